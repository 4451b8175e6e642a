package nets

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// convolution is one by 3×3 pixels, without biases.
type convolution struct {
	name   string
	in     ops.Shape
	conv   *ops.Convolution
	lowest bool // nobody needs the gradient over the inputs
	x      tensor.Vector
	y      tensor.Vector
	below  tensor.Vector
}

func newConvolution(name string, in ops.Shape, channels int) *convolution {
	return &convolution{name: name, in: in, conv: ops.NewConvolution(in, channels, 1)}
}

func (c *convolution) params() []param {
	in, out := c.in.Channels, c.conv.Out().Channels
	return []param{{tensor.Spec{Name: c.name + ".weight", Shape: []int{3, 3, in, out}, Kind: tensor.Conv}, even(rectified, 9*in)}}
}

func (c *convolution) forward(w, x tensor.Vector, p pass) tensor.Vector {
	if p.first {
		c.conv.Load(w)
	}
	c.x, c.y = x, room(c.y, p.pictures*c.conv.Out().Len())
	c.conv.Forward(c.y, x)
	return c.y
}

func (c *convolution) backward(_, g, e tensor.Vector, p pass) tensor.Vector {
	p.begin(g)
	c.conv.AddWeightGradient(g, c.x, e)
	if c.lowest {
		return nil
	}
	c.below = room(c.below, len(c.x))
	c.conv.InputGradient(c.below, e)
	return c.below
}

// depthwise is a convolution by 3×3 pixels of each channel by itself.
type depthwise struct {
	name     string
	channels int
	conv     *ops.Depthwise
	x        tensor.Vector
	y        tensor.Vector
	below    tensor.Vector
}

func newDepthwise(name string, in ops.Shape, stride int) *depthwise {
	return &depthwise{name: name, channels: in.Channels, conv: ops.NewDepthwise(in, stride)}
}

func (d *depthwise) params() []param {
	return []param{{tensor.Spec{Name: d.name + ".weight", Shape: []int{3, 3, d.channels}, Kind: tensor.Conv}, even(rectified, 9)}}
}

func (d *depthwise) forward(w, x tensor.Vector, p pass) tensor.Vector {
	d.x, d.y = x, room(d.y, p.pictures*d.conv.Out().Len())
	d.conv.Forward(d.y, x, w)
	return d.y
}

func (d *depthwise) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	p.begin(g)
	d.conv.AddWeightGradient(g, d.x, e)
	d.below = room(d.below, len(d.x))
	d.conv.InputGradient(d.below, e, w)
	return d.below
}
