package ops

import "github.com/seed-97356399/murmuration/tensor"

// side is the height and width of a convolution's kernel.
const side = 3

// bordered holds one picture with a border of one pixel of zeros, so that every
// window of side×side pixels lies within it.
type bordered struct {
	shape  Shape // without the border
	values tensor.Vector
}

func newBordered(s Shape) bordered {
	return bordered{shape: s, values: make(tensor.Vector, (s.Height+side-1)*(s.Width+side-1)*s.Channels)}
}

// line is the number of values from one row of pixels to the next.
func (b *bordered) line() int { return (b.shape.Width + side - 1) * b.shape.Channels }

// set copies a picture into the middle.
func (b *bordered) set(picture tensor.Vector) {
	row := b.shape.Width * b.shape.Channels
	to := b.values[b.line()+b.shape.Channels:]
	for y := range b.shape.Height {
		copy(to[y*b.line():], picture[y*row:(y+1)*row])
	}
}

// spread copies a picture of shape s into the middle, stride pixels and rows apart;
// the pixels between stay 0.
func (b *bordered) spread(picture tensor.Vector, s Shape, stride int) {
	if stride == 1 {
		b.set(picture)
		return
	}
	to := b.values[b.line()+b.shape.Channels:]
	for y := range s.Height {
		row := to[y*stride*b.line():]
		for x := range s.Width {
			copy(row[x*stride*s.Channels:], picture[:s.Channels])
			picture = picture[s.Channels:]
		}
	}
}

func strided(in Shape, channels, stride int) Shape {
	return Shape{Height: (in.Height-1)/stride + 1, Width: (in.Width-1)/stride + 1, Channels: channels}
}

func mustBeStride(op string, stride int) {
	if stride != 1 && stride != 2 {
		panic(op + ": the stride must be 1 or 2")
	}
}
