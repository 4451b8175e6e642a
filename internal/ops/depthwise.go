package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Depthwise is a convolution by 3×3 pixels of each channel separately, with a border of zeros as in Convolution. Its
// weights have the shape [3, 3, channels].
type Depthwise struct {
	in, out Shape
	stride  int
	input   bordered
	errors  bordered      // spread to the input's size
	turned  tensor.Vector // the weights, last tap first
}

// NewDepthwise returns the convolution of pictures of shape in, with stride 1 or 2.
func NewDepthwise(in Shape, stride int) *Depthwise {
	const op = "ops: NewDepthwise"
	mustBeStride(op, stride)
	in.mustBeSound(op)
	d := &Depthwise{in: in, out: strided(in, in.Channels, stride), stride: stride}
	d.input, d.errors = newBordered(in), newBordered(in)
	d.turned = make(tensor.Vector, d.WeightLen())
	return d
}

// Out is the shape of the output pictures.
func (d *Depthwise) Out() Shape { return d.out }

// WeightLen is the number of weights.
func (d *Depthwise) WeightLen() int { return side * side * d.in.Channels }

// Forward sets out to the convolution of in.
func (d *Depthwise) Forward(out, in, weights tensor.Vector) {
	n := pictures("Depthwise.Forward", len(in), d.in.Len())
	wantLen("Depthwise.Forward", len(out), n*d.out.Len())
	wantLen("Depthwise.Forward", len(weights), d.WeightLen())
	for i := range n {
		d.input.set(part(in, i, d.in.Len()))
		kernel.Depthwise(part(out, i, d.out.Len()), d.input.values, weights, d.grid(d.out, d.stride))
	}
}

// InputGradient sets below, the gradient over the input, from that over the output.
func (d *Depthwise) InputGradient(below, errors, weights tensor.Vector) {
	n := pictures("Depthwise.InputGradient", len(below), d.in.Len())
	wantLen("Depthwise.InputGradient", len(errors), n*d.out.Len())
	wantLen("Depthwise.InputGradient", len(weights), d.WeightLen())
	for tap := range side * side {
		copy(part(d.turned, side*side-1-tap, d.in.Channels), part(weights, tap, d.in.Channels))
	}
	for i := range n {
		d.errors.spread(part(errors, i, d.out.Len()), d.out, d.stride)
		kernel.Depthwise(part(below, i, d.in.Len()), d.errors.values, d.turned, d.grid(d.in, 1))
	}
}

// AddWeightGradient adds the gradient over the weights to grad, from the input and
// the gradient over the output.
func (d *Depthwise) AddWeightGradient(grad, in, errors tensor.Vector) {
	n := pictures("Depthwise.AddWeightGradient", len(in), d.in.Len())
	wantLen("Depthwise.AddWeightGradient", len(errors), n*d.out.Len())
	wantLen("Depthwise.AddWeightGradient", len(grad), d.WeightLen())
	for i := range n {
		d.input.set(part(in, i, d.in.Len()))
		kernel.DepthwiseGradient(grad, d.input.values, part(errors, i, d.out.Len()), d.grid(d.out, d.stride))
	}
}

// grid returns the places of the pixels of a picture of shape s within a bordered one.
func (d *Depthwise) grid(s Shape, stride int) kernel.Grid {
	return kernel.Grid{Rows: s.Height, Cols: s.Width, Channels: s.Channels, Line: d.input.line(), Stride: stride}
}
