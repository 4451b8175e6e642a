package replica_test

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// distance is how far two models are apart.
func distance(a, b *side) float64 {
	return math.Sqrt(tensor.SquaredDistance(contents(a.Replica), contents(b.Replica)))
}

// TestModelsOfOtherSitesAreJudgedByTheirOwn: two sites of two peers drift apart, a small step at a time, while the peers of
// each exchange after every step. What a peer has gone by itself since the last exchange across is believed of the other
// site, however little models differ inside; what it expects inside its site stays as it was.
func TestModelsOfOtherSitesAreJudgedByTheirOwn(t *testing.T) {
	const steps = 40
	var peers []*side
	for range 4 {
		peers = append(peers, oneSlice(t, 64, 1, replica.Options{}))
	}
	exchange := func(a, p *side, across float64) {
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2, Across: across}).finish()
	}
	diverge := func() {
		for range steps {
			for i, p := range peers {
				step := make(tensor.Vector, 64)
				for j := range step {
					step[j] = float32(1-2*(i/2)) / 100 * float32(1+(j+i)%3)
				}
				p.Add(step)
			}
			exchange(peers[0], peers[1], 0)
			exchange(peers[2], peers[3], 0)
		}
	}
	exchange(peers[0], peers[2], 1) // from here on it is known how far each goes
	diverge()
	inside, between, before := announcedBy(t, peers[0]), distance(peers[0], peers[2]), sum(contents(peers[0].Replica), contents(peers[2].Replica))
	exchange(peers[0], peers[2], 1)
	if left := distance(peers[0], peers[2]); left > 0.1*between {
		t.Errorf("%g apart, and %g after half of it was to go on both sides", between, left)
	}
	if d := apart(before, sum(contents(peers[0].Replica), contents(peers[2].Replica))); d > 1e-4 {
		t.Errorf("the sum moved by %g", d)
	}
	if now := announcedBy(t, peers[0]); now > 1.01*inside {
		t.Errorf("inside %g is believed, and %g after an exchange across", inside, now)
	}
	diverge()
	between = distance(peers[0], peers[2])
	exchange(peers[0], peers[2], 3) // both go one and a half times the way
	if left := distance(peers[0], peers[2]); left < 1.5*between {
		t.Errorf("%g apart, and %g where each was to go beyond the other by half", between, left)
	}
}
