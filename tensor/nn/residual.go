package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Residual adds its inputs to the outputs of layers (He et al., 2016): y = x + f(x). Parameters are named as those of
// a torch.nn.Sequential in its place.
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
		if !allowsInPlaceAdd(s.inner) {
			s.y, s.errors = r.Values(in.Len()), r.Gradients(in.Len())
		}
		return s
	}
	return f, nil
}

// allowsInPlaceAdd tells whether the Backward of a step neither writes to the errors that it is given nor reads the
// outputs of Forward: then others may add to these outputs in place.
func allowsInPlaceAdd(s Step) bool {
	i, ok := s.(interface{ allowsInPlaceAdd() bool })
	return ok && i.allowsInPlaceAdd()
}

type residualStep struct {
	inner     Step
	y, errors tensor.Vector // nil if the inner step allowsInPlaceAdd, whose vectors are used in place
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
