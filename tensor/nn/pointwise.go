package nn

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// GELU is x·Φ(x), where Φ is the distribution function of a normal value (Hendrycks and Gimpel, 2016), as
// torch.nn.GELU.
func GELU() Layer { return gelu{pointwise{"GELU", ops.GELU, ops.GELUGradient, false}} }

// gelu is GELU as a type of its own, so that a Linear before it can include it.
type gelu struct{ pointwise }

// SiLU is x/(1+exp(-x)) (Elfwing et al., 2018), as torch.nn.SiLU.
func SiLU() Layer { return pointwise{"SiLU", ops.SiLU, ops.SiLUGradient, false} }

// Sigmoid is 1/(1+exp(-x)), as torch.nn.Sigmoid.
func Sigmoid() Layer { return pointwise{"Sigmoid", ops.Sigmoid, ops.SigmoidGradient, true} }

// Tanh is the hyperbolic tangent, as torch.nn.Tanh.
func Tanh() Layer { return pointwise{"Tanh", ops.Tanh, ops.TanhGradient, true} }

// pointwise is a function of single values.
type pointwise struct {
	name    string
	forward func(out, x tensor.Vector)
	// gradient multiplies errors by the derivative of forward. It computes that from the outputs if fromOutput, else
	// from the inputs.
	gradient   func(errors, from tensor.Vector)
	fromOutput bool
}

func (l pointwise) String() string { return l.name }

func (l pointwise) For(in Shape) (Built, error) {
	n := in.Len()
	return Built{Out: in, Make: func(r *Room) Step { return &pointwiseStep{pointwise: l, y: r.Values(n)} }}, nil
}

type pointwiseStep struct {
	pointwise
	y    tensor.Vector
	from tensor.Vector // what the derivative is computed from
}

// Forward implements Step.
func (s *pointwiseStep) Forward(_ Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:len(x)]
	s.forward(y, x)
	if s.from = x; s.fromOutput {
		s.from = y
	}
	return y
}

// Backward implements Step.
func (s *pointwiseStep) Backward(_ Pass, _, _, e tensor.Vector) tensor.Vector {
	s.gradient(e, s.from)
	return e
}
