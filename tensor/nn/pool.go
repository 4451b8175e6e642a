package nn

import "github.com/seed-97356399/murmuration/tensor"

// MaxPool takes the largest of each 2×2 pixels, channel by channel. An odd row or
// column at the end of a picture is left out.
type MaxPool struct{ in Shape }

// NewMaxPool makes the pooling of pictures of shape in, which are at least 2×2.
func NewMaxPool(in Shape) *MaxPool {
	in.mustBeSound("NewMaxPool")
	m := &MaxPool{in: in}
	m.Out().mustBeSound("NewMaxPool")
	return m
}

// Out is the shape of the pictures that Forward makes.
func (m *MaxPool) Out() Shape {
	return Shape{Height: m.in.Height / 2, Width: m.in.Width / 2, Channels: m.in.Channels}
}

// PlacesLen is the number of bytes that keep the places of a picture's maxima.
func (m *MaxPool) PlacesLen() int { return m.Out().Len() }

// Forward sets out to the largest of each four values, the first in reading order
// where several are, and places, PlacesLen bytes a picture, to where they were. (A
// NaN counts as largest in the first place, and nowhere else.) places may be nil.
func (m *MaxPool) Forward(out tensor.Vector, places []byte, in tensor.Vector) {
	n := pictures("MaxPool.Forward", len(in), m.in.Len())
	wantLen("MaxPool.Forward", len(out), n*m.Out().Len())
	if places != nil {
		wantLen("MaxPool.Forward", len(places), n*m.PlacesLen())
	}
	for i := range out {
		at := m.quad(i)
		best, place := in[at[0]], byte(0)
		for p, from := range at[1:] {
			if v := in[from]; v > best {
				best, place = v, byte(p+1)
			}
		}
		out[i] = best
		if places != nil {
			places[i] = place
		}
	}
}

// Gradient sets below, the gradient over the input, from that over the output: each
// error goes to the place of its maximum.
func (m *MaxPool) Gradient(below tensor.Vector, places []byte, errors tensor.Vector) {
	n := pictures("MaxPool.Gradient", len(below), m.in.Len())
	wantLen("MaxPool.Gradient", len(errors), n*m.Out().Len())
	wantLen("MaxPool.Gradient", len(places), n*m.PlacesLen())
	clear(below)
	for i, e := range errors {
		below[m.quad(i)[places[i]]] = e
	}
}

// quad is where the four values are whose maximum is value i of the output.
func (m *MaxPool) quad(i int) [4]int {
	out := m.Out()
	c, i := i%out.Channels, i/out.Channels
	x, i := i%out.Width, i/out.Width
	y, picture := i%out.Height, i/out.Height
	row := m.in.Width * m.in.Channels
	at := picture*m.in.Len() + 2*y*row + 2*x*m.in.Channels + c
	return [4]int{at, at + m.in.Channels, at + row, at + row + m.in.Channels}
}
