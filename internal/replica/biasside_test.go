package replica_test

import (
	"math"
	"slices"
	"testing"
)

// TestBothSidesSeeThePull: with every codec, what is applied shows at both sides as the
// same, and a partner that stays behind while the other goes on pulls one way: as far as
// the codec is fine enough to tell.
func TestBothSidesSeeThePull(t *testing.T) {
	for _, name := range slices.Concat(codecs, latticed) {
		a, p := bigPair(t, 300)
		m := newMover(t, a, p, name, 1)
		for range 20 {
			m.exchange()
			step := contents(a.Replica)
			for i := range step {
				step[i] = -1e-3
			}
			a.Add(step)
		}
		there, here := a.Biases(1), p.Biases(1)
		if len(there) != 1 || len(here) != 1 {
			t.Errorf("%s: pulls of %v and %v", name, there, here)
			continue
		}
		if there[0].Ratio < 0.5 || math.Abs(there[0].Ratio-here[0].Ratio) > 0.01 || there[0].Exchanges != here[0].Exchanges {
			t.Errorf("%s: pulls of %+v and %+v", name, there[0], here[0])
		}
	}
}
