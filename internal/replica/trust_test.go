package replica_test

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestATrustedLessPartnerMovesLess: with every codec that codes a lie as it is, and whichever
// side it is on, who always pushes the same way moves a model less and less, while one that
// does not is believed as before, and nobody is blamed.
func TestATrustedLessPartnerMovesLess(t *testing.T) {
	const length, most = 300, 0.4 // of what its first exchange moved
	for _, name := range codecs {
		for _, active := range []bool{true, false} {
			victim, liar := oneSlice(t, length, 1, replica.Options{}), oneSlice(t, length, 1, replica.Options{Unclipped: true})
			exchange := uint64(0)
			meet := func(partner string, other *side) (moved float64) {
				before := contents(victim.Replica)
				a, p := victim, other
				if active {
					a, p = other, victim
				}
				exchange++
				begin(t, a, p, replica.Terms{Partner: partner, Plan: coding.Uniform(codec(t, name)), Window: 2, Exchange: exchange}).finish()
				return math.Sqrt(tensor.SquaredDistance(before, contents(victim.Replica)))
			}
			show := func(other *side, from tensor.Vector, far float32) {
				lie := slices.Clone(from)
				for i := range lie {
					lie[i] += far * float32(1+i%3)
				}
				if err := other.RestoreShared(lie); err != nil {
					t.Fatal(err)
				}
			}
			var first, last, honest float64
			for n := range 40 {
				show(liar, contents(victim.Replica), 1000)
				last = meet("liar", liar)
				if n == 0 {
					first = last
				}
				far := float32(1e-3)
				if n%2 == 0 {
					far = -far
				}
				show(liar, contents(victim.Replica), far)
				honest = meet("honest", liar)
			}
			if !(first > 0) || last > most*first || honest < 1e-3 {
				t.Errorf("%s, active %v: it moved %g at first and %g at last, one that is honest %g", name, active, first, last, honest)
			}
		}
	}
}
