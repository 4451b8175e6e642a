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

func (l residual) For(in Shape) (Built, error) {
	f, err := l.inner.For(in)
	if err != nil {
		return f, err
	}
	if !slices.Equal(f.Out, in) {
		return f, fmt.Errorf("want layers that keep the shape, have outputs of shape %v", f.Out)
	}
	inner := f.Make
	f.Make = func(r *Room) Step {
		s := &residualStep{}
		r.within(func() { s.inner = inner(r) })
		if !indifferent(s.inner) {
			s.y, s.errors = r.Values(in.Len()), r.Gradients(in.Len())
		}
		return s
	}
	return f, nil
}

// indifferent tells of a step whose Backward neither writes to the errors that it is given
// nor reads what Forward returned, so that others may add to that.
func indifferent(s Step) bool {
	i, ok := s.(interface{ indifferent() bool })
	return ok && i.indifferent()
}

type residualStep struct {
	inner     Step
	y, errors tensor.Vector // none for an indifferent inner step, whose own serve
}

// Forward implements Step.
func (s *residualStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	y := s.inner.Forward(p, w, x)
	if s.y != nil {
		y = s.y[:copy(s.y, y)]
	}
	tensor.Add(y, x)
	return y
}

// Backward implements Step.
func (s *residualStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	errors := e
	if s.y != nil {
		errors = s.errors[:copy(s.errors, e)]
	}
	below := s.inner.Backward(p, w, g, errors)
	if p.Inputs {
		tensor.Add(e, below)
	}
	return e
}
