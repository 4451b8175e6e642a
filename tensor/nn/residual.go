package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Residual adds its inputs to the outputs of layers (He et al., 2016): y = x + f(x). Parameters are named as those of
// a torch.nn.Sequential in its place.
func Residual(layers ...Layer) Layer {
	return residual{name: "Residual", inner: Sequential(layers...), shortcut: Sequential()}
}

// ResidualVia is Residual for layers that change the shape: a shortcut, such as a convolution of 1×1 pixels, changes
// that of the inputs too. y = shortcut(x) + f(x). The shortcut's parameters follow those of the layers, and are named
// "shortcut" if it is not Named.
func ResidualVia(shortcut Layer, layers ...Layer) Layer {
	if _, ok := shortcut.(named); !ok {
		shortcut = Named("shortcut", shortcut)
	}
	return residual{"ResidualVia", Sequential(layers...), Sequential(shortcut)}
}

type residual struct {
	name            string
	inner, shortcut *Sequence // no layers in the shortcut of a Residual
}

func (l residual) String() string { return l.name }

func (l residual) For(in Shape) (Built, error) {
	f, err := l.inner.For(in)
	if err != nil {
		return f, err
	}
	via, err := l.shortcut.For(in)
	if err != nil {
		return f, fmt.Errorf("shortcut: %w", err)
	}
	if !slices.Equal(f.Out, via.Out) {
		return f, fmt.Errorf("want layers that keep the shape, or a shortcut to theirs: outputs have the shape %v, the shortcut's %v", f.Out, via.Out)
	}
	inner, from := f.Make, f.values()
	f.Params, f.WholeBatch = slices.Concat(f.Params, via.Params), f.WholeBatch || via.WholeBatch
	f.Work += via.Work
	f.Make = func(r *Room) Step {
		s := &residualStep{shortcut: link{via.Make(r), from, f.values()}}
		r.within(func() { s.inner = link{inner(r), 0, from} })
		if len(l.shortcut.layers) > 0 || !allowsInPlaceAdd(s.inner.Step) {
			s.y, s.errors = r.Values(f.Out.Len()), r.Gradients(f.Out.Len())
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
	inner, shortcut link
	y, errors       tensor.Vector // nil if the inner step allowsInPlaceAdd to its inputs: its vectors are used in place
}

// Forward implements Step.
func (s *residualStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	y := s.inner.Forward(p, s.inner.of(w), x)
	if s.y != nil {
		y = s.y[:copy(s.y, y)]
	}
	tensor.Add(y, s.shortcut.Forward(p, s.shortcut.of(w), x))
	return y
}

// Backward implements Step.
func (s *residualStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	errors := e
	if s.y != nil {
		errors = s.errors[:copy(s.errors, e)]
	}
	// The shortcut goes first: its own Residuals share memory with the inner steps.
	e = s.shortcut.Backward(p, s.shortcut.of(w), s.shortcut.of(g), e)
	if below := s.inner.Backward(p, s.inner.of(w), s.inner.of(g), errors); p.Inputs {
		tensor.Add(e, below)
	}
	return e
}
