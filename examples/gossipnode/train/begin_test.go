package train

import (
	"testing"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestBeginning shows what is told of how a peer has come to its model.
func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		stats          stats.Peer
		alone, resumed bool
		want           string
	}{
		{stats: stats.Peer{Joined: true, Members: 1}, want: "no other peer is here yet; there is no model to copy yet"},
		{stats: stats.Peer{Joined: true, Members: 1}, resumed: true, want: "no other peer is here yet; the model is that of the checkpoint"},
		{stats: stats.Peer{Joined: true, Members: 1}, alone: true, want: "alone, as --strategy says"},
		{stats: stats.Peer{Members: 1}, want: "no peer answers; alone until one does"},
		{stats: stats.Peer{Joined: true, Members: 4}, want: "joined 3 peers; there is no model to copy yet"},
		{stats: stats.Peer{Joined: true, Members: 4}, resumed: true, want: "joined 3 peers; the model is that of the checkpoint"},
		{stats: stats.Peer{Joined: true, Members: 4, State: stats.State{Servers: 2}}, want: "joined 3 peers; model copied from 2 of them"},
		{stats: stats.Peer{Joined: true, Members: 1, State: stats.State{Servers: 1}}, want: "joined 1 peer; model copied"},
		{stats: stats.Peer{Joined: true, Members: 2, State: stats.State{Alone: true}}, want: "joined 1 peer; its model could not be copied"},
	} {
		if got := beginning(c.stats, c.alone, c.resumed); got != c.want {
			t.Errorf("%+v: %q, want %q", c.stats, got, c.want)
		}
	}
}
