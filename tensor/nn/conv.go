package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// side is the height and width of a convolution's kernel; pictures have a border
// of one pixel of zeros.
const side = 3

// Convolution is a convolution by 3×3 pixels over all channels, with a border of
// zeros: at stride 1 pictures keep their height and width, at stride 2 they are
// halved, rounded up. Its weights have the shape [3, 3, channels in, channels out].
type Convolution struct {
	in, out Shape
	stride  int
	weights tensor.Vector
}

// NewConvolution makes the convolution of pictures of shape in to so many
// channels, with stride 1 or 2.
func NewConvolution(in Shape, channels, stride int) *Convolution {
	in.mustBeSound("NewConvolution")
	c := &Convolution{in: in, out: strided(in, channels, stride), stride: stride}
	c.out.mustBeSound("NewConvolution")
	return c
}

// strided is the shape of a convolution's output.
func strided(in Shape, channels, stride int) Shape {
	if stride != 1 && stride != 2 {
		panic(fmt.Sprintf("nn: a convolution of stride %d: want 1 or 2", stride))
	}
	return Shape{Height: (in.Height-1)/stride + 1, Width: (in.Width-1)/stride + 1, Channels: channels}
}

// Out is the shape of the pictures that Forward makes.
func (c *Convolution) Out() Shape { return c.out }

// WeightLen is the number of weights.
func (c *Convolution) WeightLen() int { return side * side * c.in.Channels * c.out.Channels }

// Load takes the weights that Forward and InputGradient use until the next Load.
func (c *Convolution) Load(weights tensor.Vector) {
	wantLen("Convolution.Load", len(weights), c.WeightLen())
	c.weights = append(c.weights[:0], weights...)
}

// Forward sets out to the convolution of in.
func (c *Convolution) Forward(out, in tensor.Vector) {
	n := pictures("Convolution.Forward", len(in), c.in.Len())
	wantLen("Convolution.Forward", len(out), n*c.out.Len())
	clear(out)
	for i := range n {
		c.walk(func(x, w, y int) {
			out[i*c.out.Len()+y] += in[i*c.in.Len()+x] * c.weights[w]
		})
	}
}

// InputGradient sets below, the gradient over the input, from that over the output.
func (c *Convolution) InputGradient(below, errors tensor.Vector) {
	n := pictures("Convolution.InputGradient", len(below), c.in.Len())
	wantLen("Convolution.InputGradient", len(errors), n*c.out.Len())
	clear(below)
	for i := range n {
		c.walk(func(x, w, y int) {
			below[i*c.in.Len()+x] += errors[i*c.out.Len()+y] * c.weights[w]
		})
	}
}

// AddWeightGradient adds the gradient over the weights to grad, from the input and
// the gradient over the output.
func (c *Convolution) AddWeightGradient(grad, in, errors tensor.Vector) {
	n := pictures("Convolution.AddWeightGradient", len(in), c.in.Len())
	wantLen("Convolution.AddWeightGradient", len(errors), n*c.out.Len())
	wantLen("Convolution.AddWeightGradient", len(grad), c.WeightLen())
	for i := range n {
		c.walk(func(x, w, y int) {
			grad[w] += in[i*c.in.Len()+x] * errors[i*c.out.Len()+y]
		})
	}
}

// walk visits all products of a picture: the places of the input value, the weight
// and the output value.
func (c *Convolution) walk(visit func(x, w, y int)) {
	taps(c.in, c.out, c.stride, func(from, tap, to int) {
		for i := range c.in.Channels {
			for o := range c.out.Channels {
				visit(from*c.in.Channels+i, (tap*c.in.Channels+i)*c.out.Channels+o, to*c.out.Channels+o)
			}
		}
	})
}

// taps visits all pairs of pixels that a kernel of 3×3 joins.
func taps(in, out Shape, stride int, visit func(from, tap, to int)) {
	for y := range out.Height {
		for x := range out.Width {
			for tap := range side * side {
				fromY, fromX := y*stride+tap/side-1, x*stride+tap%side-1
				if fromY >= 0 && fromY < in.Height && fromX >= 0 && fromX < in.Width {
					visit(fromY*in.Width+fromX, tap, y*out.Width+x)
				}
			}
		}
	}
}
