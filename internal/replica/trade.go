package replica

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// Trade is what a trainer makes that works on a copy of the parameters: X − Base is to be
// added, where Base is what X was when it was handed over. Own is scratch. All have Len values.
type Trade struct{ Own, X, Base tensor.Vector }

// Take copies X, which whoever made it may go on writing to, into Own, and fails
// as Believed does for the way from Base, or with a *NotFiniteError.
func (t Trade) Take(r *Replica) error {
	r.mustFit(t.Own)
	r.mustFit(t.X)
	r.mustFit(t.Base)
	for i := range r.slices {
		s := &r.slices[i]
		mine := s.in(t.Own)
		copy(mine, s.in(t.X))
		squared := tensor.SquaredDistance(mine, s.in(t.Base))
		if !tensor.Finite(mine) || !(squared <= math.MaxFloat64) { // true for NaN
			return &NotFiniteError{At: s.offset + firstNotFinite(mine)}
		}
		if err := plausible(r, s, math.Sqrt(squared)); err != nil {
			return err
		}
	}
	return nil
}

// NotFiniteError says that a value is NaN or infinite, or the way to it.
type NotFiniteError struct {
	At int // the value's number, or the first of its slice if only the way to it is too long
}

// Error names the value.
func (e *NotFiniteError) Error() string { return fmt.Sprintf("value %d is NaN or infinite", e.At) }

// firstNotFinite is the place of the first value that is NaN or infinite, 0 if none is.
func firstNotFinite(v tensor.Vector) int {
	return max(slices.IndexFunc(v, func(x float32) bool { return x-x != 0 }), 0)
}

// AddHeld adds Own − Base, of which Take has made Own, and then overwrites X and Base with
// the parameters as they are: in one pass, slice by slice. Where nothing but this has changed
// a slice since Base was handed over, the slice becomes Own itself: what a trainer alone gets
// back is what it gave, to the bit. The caller holds the steps.
func (t Trade) AddHeld(r *Replica) (waited time.Duration) {
	waited = r.sweep(func(s *slice) {
		values, mine, before := r.of(s), s.in(t.Own), s.in(t.Base)
		r.changing(s)
		if tensor.Identical(values, before) {
			copy(values, mine) // as X is already
		} else {
			tensor.Sub(mine, before)
			tensor.Add(values, mine)
			copy(s.in(t.X), values)
		}
		copy(before, values)
	})
	r.copyFrozen(t.X)
	r.copyFrozen(t.Base)
	return waited
}
