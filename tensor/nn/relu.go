package nn

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// ReLU sets negative values to 0, as torch.nn.ReLU.
func ReLU() Layer { return relu{} }

// ReLU6 is ReLU whose values end at 6 (Howard et al., 2017), as torch.nn.ReLU6.
func ReLU6() Layer { return pointwise{"ReLU6", ops.ReLU6, ops.ReLU6Gradient, true} }

type relu struct{}

func (relu) String() string { return "ReLU" }

func (relu) For(in Shape) (Built, error) {
	n := in.Len()
	return Built{Out: in, Make: func(r *Room) Step { return &reluStep{y: r.Values(n)} }}, nil
}

type reluStep struct{ y tensor.Vector }

// Forward implements Step.
func (s *reluStep) Forward(_ Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:len(x)]
	copy(y, x)
	ops.Rectify(y)
	return y
}

// Backward implements Step.
func (s *reluStep) Backward(_ Pass, _, _, e tensor.Vector) tensor.Vector {
	ops.RectifyGradient(e, s.y[:len(e)])
	return e
}
