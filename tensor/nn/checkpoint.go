package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Checkpoint keeps nothing of its layers for the way back but their inputs, and computes
// them once more instead (Chen et al., 2016): a deep stack of them needs the room of one.
// Parameters are named as those of a torch.nn.Sequential in its place; the results are the
// same bytes as without.
func Checkpoint(layers ...Layer) Layer { return checkpoint{Sequential(layers...)} }

type checkpoint struct{ inner *Sequence }

func (l checkpoint) String() string { return "Checkpoint" }

func (l checkpoint) Fit(in Shape) (Fitted, error) {
	f, err := l.inner.Fit(in)
	if err != nil {
		return f, err
	}
	if f.WholeBatch {
		return f, fmt.Errorf("its layers need a whole batch, and would count what they compute twice")
	}
	inner, out := f.Make, f.Out
	f.Make = func(r *Room) Step {
		s := &checkpointStep{y: r.Values(out.Len())}
		shared := *r
		if r.scratch == nil { // or that of the Checkpoint around this one goes on
			shared.scratch, r.shared.next = r.shared, 0
		}
		s.inner = inner(&shared)
		r.layers = shared.layers
		return s
	}
	return f, nil
}

// checkpointStep has its own outputs; those of its inner layers are overwritten by the
// next Checkpoint.
type checkpointStep struct {
	inner Step
	x, y  tensor.Vector
}

// Forward implements Step.
func (s *checkpointStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	out := s.inner.Forward(p, w, x)
	s.x = x
	copy(s.y, out)
	return s.y[:len(out)]
}

// Backward implements Step.
func (s *checkpointStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	s.inner.Forward(p, w, s.x)
	return s.inner.Backward(p, w, g, e)
}
