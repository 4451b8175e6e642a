package nets

import (
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// dense is a fully connected layer: a weight matrix of in rows and out columns,
// then the biases.
type dense struct {
	name    string
	in, out int
	// rectify cuts the outputs off below zero.
	rectify bool
	// lowest is set where nobody needs the gradient over the inputs.
	lowest bool
	mul    *tensor.Multiplier
	x      tensor.Vector // the inputs of the last forward
	y      tensor.Vector
	below  tensor.Vector // the gradient over the inputs
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

// cut parts the layer's range, of the parameters or the gradient.
func (d *dense) cut(w tensor.Vector) (weights tensor.Matrix, bias tensor.Vector) {
	return tensor.NewMatrix(d.in, d.out, w[:d.in*d.out]), w[d.in*d.out:]
}

func (d *dense) forward(w, x tensor.Vector, p pass) tensor.Vector {
	n := p.pictures
	d.x, d.y = x, room(d.y, n*d.out)
	weights, bias := d.cut(w)
	d.mul.MatMul(tensor.NewMatrix(n, d.out, d.y), 1, tensor.NewMatrix(n, d.in, x), weights, 0)
	if d.rectify {
		nn.AddRowsRectify(d.y, bias)
	} else {
		nn.AddRows(d.y, bias)
	}
	return d.y
}

func (d *dense) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	n := p.pictures
	if d.rectify {
		nn.RectifyGradient(e, d.y)
	}
	errors := tensor.NewMatrix(n, d.out, e)
	weights, bias := d.cut(g)
	d.mul.MatMul(weights, 1, tensor.NewMatrix(n, d.in, d.x).T(), errors, p.beta())
	p.begin(bias)
	nn.AddSumRows(bias, e)
	if d.lowest {
		return nil
	}
	d.below = room(d.below, n*d.in)
	weights, _ = d.cut(w)
	d.mul.MatMul(tensor.NewMatrix(n, d.in, d.below), 1, errors, weights.T(), 0)
	return d.below
}
