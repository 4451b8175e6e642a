package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// LayerNorm shifts and scales the values of each row to mean 0 and variance 1, then scales and shifts each column
// (Ba, Kiros and Hinton, 2016), as torch.nn.LayerNorm. Its parameters are weight and bias, [width] each.
func LayerNorm(width int) Layer { return layerNorm{width} }

type layerNorm struct{ width int }

func (l layerNorm) String() string { return fmt.Sprintf("LayerNorm(%d)", l.width) }

func (l layerNorm) For(in Shape) (Built, error) {
	if in.Width() != l.width {
		return Built{}, fmt.Errorf("want rows of %d values, have %d", l.width, in.Width())
	}
	return Built{Out: in, Params: scaleAndShift(l.width), Make: func(r *Room) Step {
		return &layerNormStep{width: l.width, y: r.Values(in.Len()), means: r.Values(in.Rows()), inverses: r.Values(in.Rows())}
	}}, nil
}

// scaleAndShift are the parameters of a normalization.
func scaleAndShift(n int) []Param {
	return []Param{
		{tensor.Spec{Name: "weight", Shape: []int{n}, Kind: tensor.Norm}, Fill(1)},
		{tensor.Spec{Name: "bias", Shape: []int{n}, Kind: tensor.Norm}, Fill(0)},
	}
}

type layerNormStep struct {
	width           int
	x               tensor.Vector // of the last Forward
	y               tensor.Vector
	means, inverses tensor.Vector // of the rows
}

// Forward implements Step.
func (s *layerNormStep) Forward(_ Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	y, rows := s.y[:len(x)], len(x)/s.width
	ops.LayerNorm(y, s.means[:rows], s.inverses[:rows], x, w[:s.width], w[s.width:])
	return y
}

// Backward implements Step.
func (s *layerNormStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	rows := len(e) / s.width
	ops.LayerNormGradient(e, g[:s.width], g[s.width:], s.means[:rows], s.inverses[:rows], s.x, e, w[:s.width])
	return e
}
