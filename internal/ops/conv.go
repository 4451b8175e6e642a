package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Convolution is a convolution by 3×3 pixels over all channels, with a border of zeros: stride 1 keeps the height and
// width of pictures, stride 2 halves them, rounded up. Its weights have the shape [3, 3, channels in, channels out].
type Convolution struct {
	in, out Shape
	stride  int
	input   bordered
	errors  bordered      // spread to the input's size
	forward tensor.Vector // weights in blocks of channels out
	turned  tensor.Vector // weights in blocks of channels in, for InputGradient
	isTurn  bool          // turned has been computed from forward
	sums    tensor.Vector // the gradient over the weights, in blocks
	room    tensor.Vector // one block of channels of a picture
}

// NewConvolution returns the convolution of pictures of shape in to that many channels, with stride 1 or 2.
func NewConvolution(in Shape, channels, stride int) *Convolution {
	const op = "ops: NewConvolution"
	mustBeStride(op, stride)
	out := strided(in, channels, stride)
	in.mustBeSound(op)
	out.mustBeSound(op)
	const taps = side * side
	return &Convolution{
		in: in, out: out, stride: stride,
		input:   newBordered(in),
		errors:  newBordered(Shape{in.Height, in.Width, channels}),
		forward: make(tensor.Vector, blockedLen(taps*in.Channels, channels)),
		turned:  make(tensor.Vector, blockedLen(taps*channels, in.Channels)),
		sums:    make(tensor.Vector, blockedLen(taps*in.Channels, channels)),
		room:    make(tensor.Vector, in.Pixels()*wideBlock),
	}
}

// Out is the shape of the output pictures.
func (c *Convolution) Out() Shape { return c.out }

// WeightLen is the number of weights.
func (c *Convolution) WeightLen() int { return c.rows() * c.out.Channels }

// rows is the number of weights of one output channel.
func (c *Convolution) rows() int { return side * side * c.in.Channels }

// Load sets the weights for Forward and InputGradient until the next Load.
func (c *Convolution) Load(weights tensor.Vector) {
	wantLen("Convolution.Load", len(weights), c.WeightLen())
	for b := (block{}).next(c.out.Channels); b.count > 0; b = b.next(c.out.Channels) {
		b.gather(b.of(c.forward, c.rows()), weights, c.out.Channels)
	}
	c.isTurn = false
}

// Forward sets out to the convolution of in.
func (c *Convolution) Forward(out, in tensor.Vector) {
	n := pictures("Convolution.Forward", len(in), c.in.Len())
	wantLen("Convolution.Forward", len(out), n*c.out.Len())
	for i := range n {
		c.input.set(part(in, i, c.in.Len()))
		c.convolve(part(out, i, c.out.Len()), c.out, &c.input, c.stride, c.forward)
	}
}

// InputGradient sets below, the gradient over the input, from the gradient over the output: it spreads that to the
// input's size, and convolves it at stride 1 with the weights turned around.
func (c *Convolution) InputGradient(below, errors tensor.Vector) {
	n := pictures("Convolution.InputGradient", len(below), c.in.Len())
	wantLen("Convolution.InputGradient", len(errors), n*c.out.Len())
	c.turn()
	for i := range n {
		c.errors.spread(part(errors, i, c.out.Len()), c.out, c.stride)
		c.convolve(part(below, i, c.in.Len()), c.in, &c.errors, 1, c.turned)
	}
}

// convolve sets y, a picture of shape s, to the sums of weights times the windows of x.
func (c *Convolution) convolve(y tensor.Vector, s Shape, x *bordered, stride int, weights tensor.Vector) {
	rows := side * side * x.shape.Channels
	for b := (block{}).next(s.Channels); b.count > 0; b = b.next(s.Channels) {
		to, windows := y[b.from:], c.windows(s, x, stride, s.Channels)
		if b.count < b.width {
			to, windows = c.room, c.windows(s, x, stride, b.width)
		}
		b.convolve(to, x.values, b.of(weights, rows), windows)
		if b.count < b.width {
			b.scatter(y, c.room, s.Channels)
		}
	}
}

// windows returns the windows of x for each pixel of a picture of shape s, whose pixels are pixel values apart.
func (c *Convolution) windows(s Shape, x *bordered, stride, pixel int) kernel.Windows {
	return kernel.Windows{
		Rows: s.Height, Cols: s.Width, Taps: side * x.shape.Channels, Line: x.line(),
		XPixel: stride * x.shape.Channels, XRow: stride * x.line(),
		YPixel: pixel, YRow: s.Width * pixel,
	}
}

// turn computes turned from forward: it reverses the order of the taps, and exchanges input and output channels.
func (c *Convolution) turn() {
	if c.isTurn {
		return
	}
	c.isTurn = true
	const taps = side * side
	for to := (block{}).next(c.in.Channels); to.count > 0; to = to.next(c.in.Channels) {
		turned := to.of(c.turned, taps*c.out.Channels)
		for from := (block{}).next(c.out.Channels); from.count > 0; from = from.next(c.out.Channels) {
			weights := from.of(c.forward, c.rows())
			for tap := range taps {
				for i := range to.count {
					row := weights[((taps-1-tap)*c.in.Channels+to.from+i)*from.width:][:from.count]
					at := (tap*c.out.Channels+from.from)*to.width + i
					for o, w := range row {
						turned[at+o*to.width] = w
					}
				}
			}
		}
	}
}

// AddWeightGradient adds the gradient over the weights to grad, from the input and
// the gradient over the output.
func (c *Convolution) AddWeightGradient(grad, in, errors tensor.Vector) {
	n := pictures("Convolution.AddWeightGradient", len(in), c.in.Len())
	wantLen("Convolution.AddWeightGradient", len(errors), n*c.out.Len())
	wantLen("Convolution.AddWeightGradient", len(grad), c.WeightLen())
	clear(c.sums)
	for i := range n {
		c.input.set(part(in, i, c.in.Len()))
		picture := part(errors, i, c.out.Len())
		for b := (block{}).next(c.out.Channels); b.count > 0; b = b.next(c.out.Channels) {
			from, pixel := picture[b.from:], c.out.Channels
			if b.count < b.width {
				b.gather(c.room, picture, c.out.Channels)
				from, pixel = c.room, b.width
			}
			b.convolveGradient(b.of(c.sums, c.rows()), c.input.values, from, c.windows(c.out, &c.input, c.stride, pixel))
		}
	}
	for b := (block{}).next(c.out.Channels); b.count > 0; b = b.next(c.out.Channels) {
		b.add(grad, b.of(c.sums, c.rows()), c.out.Channels)
	}
}
