package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Residual adds its inputs to what layers make of them (He et al., 2016): y = x + f(x).
// Parameters are named as those of a torch.nn.Sequential in its place.
func Residual(layers ...Layer) Layer { return residual{Sequential(layers...)} }

type residual struct{ inner *Sequence }

func (l residual) String() string { return "Residual" }

func (l residual) Fit(in Shape) (Fitted, error) {
	f, err := l.inner.Fit(in)
	if err != nil {
		return f, err
	}
	if !slices.Equal(f.Out, in) {
		return f, fmt.Errorf("want layers that keep the shape, have outputs of shape %v", f.Out)
	}
	inner := f.Make
	f.Make = func(r *Room) Step {
		return &residualStep{inner: inner(r), y: r.Values(in.Len()), errors: r.Gradients(in.Len())}
	}
	return f, nil
}

type residualStep struct {
	inner     Step
	y, errors tensor.Vector
}

// Forward implements Step.
func (s *residualStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	y := s.y[:len(x)]
	copy(y, s.inner.Forward(p, w, x))
	tensor.Add(y, x)
	return y
}

// Backward implements Step.
func (s *residualStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	errors := s.errors[:len(e)]
	copy(errors, e) // which the layers may overwrite
	below := s.inner.Backward(p, w, g, errors)
	if p.Inputs {
		tensor.Add(e, below)
	}
	return e
}
