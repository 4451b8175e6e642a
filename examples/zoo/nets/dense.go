package nets

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// product multiplies each row of its inputs with a matrix of in rows and out columns.
type product struct {
	name    string
	in, out int
	// lowest is set where nobody needs the gradient over the inputs.
	lowest bool
	mul    *tensor.Multiplier
	x      tensor.Vector // the inputs of the last forward
	y      tensor.Vector
	below  tensor.Vector // the gradient over the inputs
}

func (m *product) multiply(w, x tensor.Vector) tensor.Vector {
	rows := len(x) / m.in
	m.x, m.y = x, room(m.y, rows*m.out)
	m.mul.MatMul(tensor.NewMatrix(rows, m.out, m.y), 1, tensor.NewMatrix(rows, m.in, x), tensor.NewMatrix(m.in, m.out, w), 0)
	return m.y
}

func (m *product) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	rows := len(e) / m.out
	errors := tensor.NewMatrix(rows, m.out, e)
	m.mul.MatMul(tensor.NewMatrix(m.in, m.out, g), 1, tensor.NewMatrix(rows, m.in, m.x).T(), errors, p.beta())
	if m.lowest {
		return nil
	}
	m.below = room(m.below, rows*m.in)
	m.mul.MatMul(tensor.NewMatrix(rows, m.in, m.below), 1, errors, tensor.NewMatrix(m.in, m.out, w).T(), 0)
	return m.below
}

// pointwise is a convolution over single pixels, which mixes their channels: a
// product with one row a pixel.
type pointwise struct{ product }

func (c *pointwise) params() []param {
	return []param{{tensor.Spec{Name: c.name + ".weight", Shape: []int{1, 1, c.in, c.out}, Kind: tensor.Conv}, even(rectified, c.in)}}
}

func (c *pointwise) forward(w, x tensor.Vector, _ pass) tensor.Vector { return c.multiply(w, x) }

// dense is a fully connected layer: a product with one row a picture, and a bias for
// each output. The weights come first in its range, then the biases.
type dense struct {
	product
	// rectify cuts the outputs off below zero.
	rectify bool
}

func (d *dense) params() []param {
	variance := linear
	if d.rectify {
		variance = rectified
	}
	return []param{
		{tensor.Spec{Name: d.name + ".weight", Shape: []int{d.in, d.out}, Kind: tensor.Dense}, even(variance, d.in)},
		{tensor.Spec{Name: d.name + ".bias", Shape: []int{d.out}, Kind: tensor.Bias}, constant(0)},
	}
}

func (d *dense) forward(w, x tensor.Vector, _ pass) tensor.Vector {
	weights := d.in * d.out
	y := d.multiply(w[:weights], x)
	if d.rectify {
		ops.AddRowsRectify(y, w[weights:])
	} else {
		ops.AddRows(y, w[weights:])
	}
	return y
}

func (d *dense) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	if d.rectify {
		ops.RectifyGradient(e, d.y)
	}
	weights := d.in * d.out
	p.begin(g[weights:])
	ops.AddSumRows(g[weights:], e)
	return d.product.backward(w[:weights], g[:weights], e, p)
}
