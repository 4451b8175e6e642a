package nn

import "github.com/seed-97356399/murmuration/tensor"

// Depthwise is a convolution by 3×3 pixels of each channel by itself, with a border
// of zeros, as Convolution has it. Its weights have the shape [3, 3, channels].
type Depthwise struct {
	in, out Shape
	stride  int
}

// NewDepthwise makes the convolution of pictures of shape in, with stride 1 or 2.
func NewDepthwise(in Shape, stride int) *Depthwise {
	in.mustBeSound("NewDepthwise")
	return &Depthwise{in: in, out: strided(in, in.Channels, stride), stride: stride}
}

// Out is the shape of the pictures that Forward makes.
func (d *Depthwise) Out() Shape { return d.out }

// WeightLen is the number of weights.
func (d *Depthwise) WeightLen() int { return side * side * d.in.Channels }

// Forward sets out to the convolution of in.
func (d *Depthwise) Forward(out, in, weights tensor.Vector) {
	n := pictures("Depthwise.Forward", len(in), d.in.Len())
	wantLen("Depthwise.Forward", len(out), n*d.out.Len())
	wantLen("Depthwise.Forward", len(weights), d.WeightLen())
	clear(out)
	for i := range n {
		d.walk(func(x, w, y int) {
			out[i*d.out.Len()+y] += in[i*d.in.Len()+x] * weights[w]
		})
	}
}

// InputGradient sets below, the gradient over the input, from that over the output.
func (d *Depthwise) InputGradient(below, errors, weights tensor.Vector) {
	n := pictures("Depthwise.InputGradient", len(below), d.in.Len())
	wantLen("Depthwise.InputGradient", len(errors), n*d.out.Len())
	wantLen("Depthwise.InputGradient", len(weights), d.WeightLen())
	clear(below)
	for i := range n {
		d.walk(func(x, w, y int) {
			below[i*d.in.Len()+x] += errors[i*d.out.Len()+y] * weights[w]
		})
	}
}

// AddWeightGradient adds the gradient over the weights to grad, from the input and
// the gradient over the output.
func (d *Depthwise) AddWeightGradient(grad, in, errors tensor.Vector) {
	n := pictures("Depthwise.AddWeightGradient", len(in), d.in.Len())
	wantLen("Depthwise.AddWeightGradient", len(errors), n*d.out.Len())
	wantLen("Depthwise.AddWeightGradient", len(grad), d.WeightLen())
	for i := range n {
		d.walk(func(x, w, y int) {
			grad[w] += in[i*d.in.Len()+x] * errors[i*d.out.Len()+y]
		})
	}
}

func (d *Depthwise) walk(visit func(x, w, y int)) {
	taps(d.in, d.out, d.stride, func(from, tap, to int) {
		for c := range d.in.Channels {
			visit(from*d.in.Channels+c, tap*d.in.Channels+c, to*d.in.Channels+c)
		}
	})
}
