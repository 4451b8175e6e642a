package train

import (
	"testing"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
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

// TestWhoTrainsIsSeen though all members say their steps at the same time, and seldom; who comes back, or has gone, does not train.
func TestWhoTrainsIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		steps func(look uint64) []uint64 // of each member
		want  uint64                     // the look at which one is known to train; 0 if none does
	}{
		"some train, and say so every fifth second": {func(look uint64) []uint64 { n := 40 * (look/5 + 1); return []uint64{n, n, n} }, 15},
		"each comes back with the steps of before": {func(look uint64) []uint64 {
			return []uint64{900 * min(look, 1), 900 * (min(look, 2) / 2), 900 * (min(look, 3) / 3), 900 * (min(look, 4) / 4)}
		}, 0},
		"one has gone, of which little is heard": {func(look uint64) []uint64 { return []uint64{900 + min(look, 2)} }, 0},
	} {
		others, seen := growth{}, uint64(0)
		for look := range uint64(30) {
			var members []control.Member
			for i, n := range c.steps(look) {
				members = append(members, control.Member{ID: transport.PeerID('a' + rune(i)), Steps: n})
			}
			if others.look(members) && seen == 0 {
				seen = look
			}
		}
		if seen != c.want {
			t.Errorf("%s: known at look %d, want %d", name, seen, c.want)
		}
	}
}
