package train

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestDistanceKnown: a peer tells no estimate of its last exchanges for the distance in the end.
func TestDistanceKnown(t *testing.T) {
	estimate := stats.Exchanges{Initiated: 3, ConsensusDistance: 0.5}
	for _, c := range []struct {
		of   stats.Peer
		want float64
	}{
		{stats.Peer{Exchanges: estimate, Members: 3}, math.NaN()},
		{stats.Peer{Exchanges: estimate, Members: 3, Merged: true}, 0},
		{stats.Peer{Exchanges: estimate, Members: 1, Merged: true}, math.NaN()}, // the others had left
	} {
		if got := float64(distanceKnown(c.of)); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%d members, merged %v: %v, want %v", c.of.Members, c.of.Merged, got, c.want)
		}
	}
}
