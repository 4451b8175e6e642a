package replica

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// Plausible tells whether others would believe the shared values of a gradient or a step,
// which has Len values: those of a member whose model is about this one. It fails with
// ErrDiverged if they would not, or if the model, values that are never sent included,
// would not be finite with the change added. What a peer adds to a model is held to the
// same as what it would have to send others.
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

// plausible tells whether others would believe a change of a slice that has this norm.
func plausible(r *Replica, s *slice, norm float64) error {
	if norm <= implausibleRatio/2 {
		return nil // neither absurd nor enough to make infinite what is finite
	}
	s.Lock()
	tooFar := s.layer != notShared && implausible(2*norm, r.of(s)) // as sendable has it
	fits := norm+tensor.Norm2(r.of(s)) <= math.MaxFloat32
	s.Unlock()
	if tooFar || !fits {
		return fmt.Errorf("values %d to %d, norm %g: %w", s.offset, s.offset+s.length-1, norm, ErrDiverged)
	}
	return nil
}
