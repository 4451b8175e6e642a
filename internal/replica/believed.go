package replica

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Believed tells whether others would believe the shared values of a gradient or a step,
// which has Len values: those of a member whose model is about this one. It fails with
// ErrDiverged if they would not. What a peer adds to a model that others have too is held
// to the same as what it would have to send them.
func (r *Replica) Believed(change tensor.Vector) error {
	r.mustFit(change)
	for _, at := range r.shared {
		s := &r.slices[at]
		s.Lock()
		norm := tensor.Norm2(s.in(change))
		absurd := absurd(2*norm, r.of(s)) // as sendable has it
		s.Unlock()
		if absurd {
			return fmt.Errorf("norm %g: %w", norm, ErrDiverged)
		}
	}
	return nil
}
