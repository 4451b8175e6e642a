package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Checkpoint keeps only the inputs of its layers for Backward, which computes the layers again (Chen et al., 2016):
// so a deep stack of Checkpoints needs the memory of one. Parameters are named as those of a torch.nn.Sequential in
// its place; the results are the same bytes as without.
func Checkpoint(layers ...Layer) Layer { return checkpoint{Sequential(layers...)} }

type checkpoint struct{ inner *Sequence }

func (l checkpoint) String() string { return "Checkpoint" }

func (l checkpoint) For(in Shape) (Built, error) {
	f, err := l.inner.For(in)
	if err != nil {
		return f, err
	}
	if f.WholeBatch {
		return f, fmt.Errorf("its layers need a whole batch, and would count what they compute twice")
	}
	inner, values := f.Make, f.Out.Len()
	f.Make = func(r *Room) Step {
		own := values
		if r.learns {
			own = max(own, in.Len())
		}
		s := &checkpointStep{own: r.Values(own)}
		shared := *r
		if r.scratch == nil { // else this Checkpoint continues the scratch of the Checkpoint around it
			shared.scratch, r.shared.next = r.shared, 0
		}
		s.inner = inner(&shared)
		r.layers = shared.layers
		return s
	}
	return f, nil
}

// checkpointStep has memory of its own for its outputs, which Backward reuses for its errors: by then all later
// layers are done with the outputs. The memory of its inner layers is shared: the next Checkpoint overwrites it in
// Forward, and the Checkpoint before in Backward.
type checkpointStep struct {
	inner  Step
	x, own tensor.Vector
}

// Forward implements Step.
func (s *checkpointStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	return s.keep(s.inner.Forward(p, w, x))
}

// Backward implements Step.
func (s *checkpointStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	s.inner.Forward(p, w, s.x)
	return s.keep(s.inner.Backward(p, w, g, e))
}

func (s *checkpointStep) keep(v tensor.Vector) tensor.Vector { return s.own[:copy(s.own, v)] }
