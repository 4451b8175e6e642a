package nets

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// maxPool takes the largest of each 2×2 pixels.
type maxPool struct {
	in     ops.Shape
	pool   *ops.MaxPool
	y      tensor.Vector
	below  tensor.Vector
	places []byte // of the maxima
}

func newMaxPool(in ops.Shape) *maxPool { return &maxPool{in: in, pool: ops.NewMaxPool(in)} }

func (m *maxPool) params() []param { return nil }

func (m *maxPool) forward(_, x tensor.Vector, p pass) tensor.Vector {
	m.y = room(m.y, p.pictures*m.pool.Out().Len())
	m.places = room(m.places, p.pictures*m.pool.PlacesLen())
	m.pool.Forward(m.y, m.places, x)
	return m.y
}

func (m *maxPool) backward(_, _, e tensor.Vector, p pass) tensor.Vector {
	m.below = room(m.below, p.pictures*m.in.Len())
	m.pool.Gradient(m.below, m.places, e)
	return m.below
}

// average takes the mean over the pixels of each picture.
type average struct {
	in    ops.Shape
	y     tensor.Vector
	below tensor.Vector
}

func (a *average) params() []param { return nil }

func (a *average) forward(_, x tensor.Vector, p pass) tensor.Vector {
	a.y = room(a.y, p.pictures*a.in.Channels)
	ops.GlobalAverage(a.y, x, a.in)
	return a.y
}

func (a *average) backward(_, _, e tensor.Vector, p pass) tensor.Vector {
	a.below = room(a.below, p.pictures*a.in.Len())
	ops.GlobalAverageGradient(a.below, e, a.in)
	return a.below
}
