package nets

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// groupSize is the number of channels that are normalized together.
const groupSize = 8

// norm normalizes groups of channels of each picture, scales and shifts the
// channels, and cuts off what is below zero.
type norm struct {
	name     string
	channels int
	norm     *ops.GroupNorm
	x        tensor.Vector
	y        tensor.Vector
	stats    tensor.Vector
}

func newNorm(name string, s ops.Shape) *norm {
	return &norm{name: name, channels: s.Channels, norm: ops.NewGroupNorm(s, s.Channels/groupSize)}
}

func (l *norm) params() []param {
	return []param{
		{tensor.Spec{Name: l.name + ".scale", Shape: []int{l.channels}, Kind: tensor.Norm}, constant(1)},
		{tensor.Spec{Name: l.name + ".shift", Shape: []int{l.channels}, Kind: tensor.Norm}, constant(0)},
	}
}

func (l *norm) forward(w, x tensor.Vector, p pass) tensor.Vector {
	l.x, l.y, l.stats = x, room(l.y, len(x)), room(l.stats, p.pictures*l.norm.StatsLen())
	l.norm.ForwardRectify(l.y, l.stats, x, w[:l.channels], w[l.channels:])
	return l.y
}

func (l *norm) backward(w, g, e tensor.Vector, p pass) tensor.Vector {
	p.begin(g)
	l.norm.GradientRectify(e, g[:l.channels], g[l.channels:], l.stats, l.x, l.y, e, w[:l.channels])
	return e
}

// bias adds a bias to each channel and cuts off what is below zero, in place.
type bias struct {
	name     string
	channels int
	y        tensor.Vector
}

func (b *bias) params() []param {
	return []param{{tensor.Spec{Name: b.name + ".bias", Shape: []int{b.channels}, Kind: tensor.Bias}, constant(0)}}
}

func (b *bias) forward(w, x tensor.Vector, _ pass) tensor.Vector {
	b.y = x
	ops.AddRowsRectify(x, w)
	return x
}

func (b *bias) backward(_, g, e tensor.Vector, p pass) tensor.Vector {
	p.begin(g)
	ops.RectifyGradient(e, b.y)
	ops.AddSumRows(g, e)
	return e
}
