package nets

import (
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// bias adds a bias to each channel and cuts off what is below zero, in place.
type bias struct {
	name     string
	channels int
	y        tensor.Vector
}

func (b *bias) params() []param {
	return []param{{tensor.Spec{Name: b.name + ".bias", Shape: []int{b.channels}, Kind: tensor.Bias}, constant(0)}}
}

func (b *bias) forward(w, x tensor.Vector, _ pass) tensor.Vector {
	b.y = x
	nn.AddRowsRectify(x, w)
	return x
}

func (b *bias) backward(_, g, e tensor.Vector, p pass) tensor.Vector {
	p.begin(g)
	nn.RectifyGradient(e, b.y)
	nn.AddSumRows(g, e)
	return e
}
