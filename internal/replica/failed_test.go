package replica_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestBlocksThatFailAreNotExchangedYet: models that were equal, and then went each their own way, meet as soon with
// a lattice, whose blocks all fail at first or only some of them, as raw. What the first attempt has not exchanged is still
// what a side has moved by itself, by which it believes the second.
func TestBlocksThatFailAreNotExchangedYet(t *testing.T) {
	const n = 4 * coding.BlockLen
	for _, name := range []string{"raw", "lattice8+4", "lattice6+4", "lattice4+1"} {
		for _, moving := range []int{n, n / 4} { // values, from the first
			a, p := oneSlice(t, n, 1, replica.Options{SliceLen: n}), oneSlice(t, n, 1, replica.Options{SliceLen: n})
			meet := func() {
				begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 2}).finish()
			}
			meet()
			step := make(tensor.Vector, n)
			for i := range step[:moving] {
				step[i] = 4
			}
			a.Add(step)
			tensor.Scale(step, -1)
			p.Add(step)
			before, whole := distance(a, p), sum(contents(a.Replica), contents(p.Replica))
			meet()
			if left := distance(a, p); left > 0.2*before {
				t.Errorf("%s, %d values: %g apart, and %g after an exchange", name, moving, before, left)
			}
			if d := apart(whole, sum(contents(a.Replica), contents(p.Replica))); d > 1e-3 {
				t.Errorf("%s: the sum moved by %g", name, d)
			}
		}
	}
}

// TestModelsFarApartMeetWhateverFails: as many blocks fail as no exchange has room to send as they are.
func TestModelsFarApartMeetWhateverFails(t *testing.T) {
	const n = 64 * coding.BlockLen
	for _, name := range latticed {
		a, p := oneSlice(t, n, 1, replica.Options{SliceLen: n}), oneSlice(t, n, 1, replica.Options{SliceLen: n})
		meet := func() {
			begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 2}).finish()
		}
		meet()
		step := make(tensor.Vector, n)
		for i := range step {
			step[i] = 4
		}
		a.Add(step)
		tensor.Scale(step, -1)
		p.Add(step)
		before := distance(a, p)
		for range n / coding.BlockLen / 16 { // of which one exchange has room for 16
			meet()
		}
		if left := distance(a, p); left > 0.2*before {
			t.Errorf("%s: %g apart, and %g after four exchanges", name, before, left)
		}
	}
}
