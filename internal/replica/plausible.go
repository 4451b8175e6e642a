package replica

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// Plausible checks whether the shared values of a gradient or a step, which has Len values,
// would be plausible to members with similar models. It fails with ErrDiverged if not, or
// if the model with the change added, including values that are never sent, would not be
// finite. A peer's own changes must meet the same limits as values that it sends.
func (r *Replica) Plausible(change tensor.Vector) error {
	r.mustFit(change)
	for i := range r.slices {
		s := &r.slices[i]
		if err := plausible(r, s, tensor.Norm2(s.in(change))); err != nil {
			return err
		}
	}
	return nil
}

// plausible checks whether a change of a slice with this norm would be plausible to others.
func plausible(r *Replica, s *slice, norm float64) error {
	if norm <= implausibleRatio/2 {
		return nil // plausible, and too small to make finite values infinite
	}
	s.Lock()
	tooFar := s.layer != notShared && implausible(2*norm, r.of(s)) // as in sendable
	fits := norm+tensor.Norm2(r.of(s)) <= math.MaxFloat32
	s.Unlock()
	if tooFar || !fits {
		return fmt.Errorf("values %d to %d, norm %g: %w", s.offset, s.offset+s.length-1, norm, ErrDiverged)
	}
	return nil
}
