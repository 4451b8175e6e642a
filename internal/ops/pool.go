package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// poolSide is the height and width of the squares that MaxPool makes one pixel of.
const poolSide = 2

// MaxPool takes the largest value of each square of 2×2 pixels, channel by channel. It ignores an odd row or column
// at the end of a picture.
type MaxPool struct{ in, out Shape }

// NewMaxPool returns the pooling of pictures of shape in, at least 2×2.
func NewMaxPool(in Shape) *MaxPool {
	out := Shape{Height: in.Height / poolSide, Width: in.Width / poolSide, Channels: in.Channels}
	in.mustBeSound("ops: NewMaxPool")
	out.mustBeSound("ops: NewMaxPool")
	return &MaxPool{in: in, out: out}
}

// Out is the shape of the output pictures.
func (m *MaxPool) Out() Shape { return m.out }

// PlacesLen is the number of bytes for the places of a picture's maxima.
func (m *MaxPool) PlacesLen() int { return m.out.Len() }

// Forward sets out to the largest of each four values, and places, PlacesLen bytes for each picture, to the places of
// these values: the first one in reading order if several are equal. (A NaN counts as largest in the first place, and
// is ignored elsewhere.) places may be nil.
func (m *MaxPool) Forward(out tensor.Vector, places []byte, in tensor.Vector) {
	n := pictures("MaxPool.Forward", len(in), m.in.Len())
	wantLen("MaxPool.Forward", len(out), n*m.out.Len())
	if places != nil {
		wantLen("MaxPool.Forward", len(places), n*m.PlacesLen())
	}
	for i := range n {
		var at []byte
		if places != nil {
			at = places[i*m.PlacesLen():][:m.PlacesLen()]
		}
		kernel.MaxPool(part(out, i, m.out.Len()), at, part(in, i, m.in.Len()), m.grid())
	}
}

// Gradient sets below, the gradient over the input, from the gradient over the output: each error goes to the place
// of its maximum.
func (m *MaxPool) Gradient(below tensor.Vector, places []byte, errors tensor.Vector) {
	n := pictures("MaxPool.Gradient", len(below), m.in.Len())
	wantLen("MaxPool.Gradient", len(errors), n*m.out.Len())
	wantLen("MaxPool.Gradient", len(places), n*m.PlacesLen())
	for i := range n {
		to, at := part(below, i, m.in.Len()), places[i*m.PlacesLen():][:m.PlacesLen()]
		kernel.MaxPoolGradient(to, at, part(errors, i, m.out.Len()), m.grid())
		m.clearRest(to)
	}
}

// clearRest sets an odd row and column to 0, which MaxPool ignores.
func (m *MaxPool) clearRest(picture tensor.Vector) {
	line, used := m.in.Width*m.in.Channels, poolSide*m.out.Width*m.in.Channels
	if used < line {
		for y := range m.in.Height {
			clear(picture[y*line+used : (y+1)*line])
		}
	}
	clear(picture[poolSide*m.out.Height*line:])
}

func (m *MaxPool) grid() kernel.Grid {
	return kernel.Grid{Rows: m.out.Height, Cols: m.out.Width, Channels: m.in.Channels, Line: m.in.Width * m.in.Channels, Stride: poolSide}
}
