package nets

import (
	"github.com/seed-97356399/murmuration/tensor"
)

// pointwise is a convolution over single pixels, which mixes their channels: a
// product with one row a pixel.
type pointwise struct {
	name    string
	in, out int // channels
	mul     *tensor.Multiplier
	x       tensor.Vector
	y       tensor.Vector
	below   tensor.Vector
}

func (c *pointwise) params() []param {
	return []param{{tensor.Spec{Name: c.name + ".weight", Shape: []int{1, 1, c.in, c.out}, Kind: tensor.Conv}, even(rectified, c.in)}}
}

func (c *pointwise) forward(w, x tensor.Vector, _ pass) tensor.Vector {
	pixels := len(x) / c.in
	c.x, c.y = x, room(c.y, pixels*c.out)
	c.mul.MatMul(tensor.NewMatrix(pixels, c.out, c.y), 1, tensor.NewMatrix(pixels, c.in, x), tensor.NewMatrix(c.in, c.out, w), 0)
	return c.y
}

func (c *pointwise) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	pixels := len(e) / c.out
	errors := tensor.NewMatrix(pixels, c.out, e)
	c.mul.MatMul(tensor.NewMatrix(c.in, c.out, g), 1, tensor.NewMatrix(pixels, c.in, c.x).T(), errors, p.beta())
	c.below = room(c.below, pixels*c.in)
	c.mul.MatMul(tensor.NewMatrix(pixels, c.in, c.below), 1, errors, tensor.NewMatrix(c.in, c.out, w).T(), 0)
	return c.below
}
