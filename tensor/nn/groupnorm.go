package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// GroupNorm shifts and scales the values of each group of channels of a picture to mean 0 and variance 1, then scales
// and shifts each channel (Wu and He, 2018), as torch.nn.GroupNorm. Its parameters are weight and bias, [channels]
// each.
func GroupNorm(groups, channels int) Layer { return groupNorm{groups: groups, channels: channels} }

type groupNorm struct {
	groups, channels int
	rectify          bool // ReLU follows
}

func (l groupNorm) String() string { return fmt.Sprintf("GroupNorm(%d, %d)", l.groups, l.channels) }

// fuse includes a ReLU that follows, applied while each picture is in the cache.
func (l groupNorm) fuse(next []Layer) (Layer, int) {
	if _, ok := first(next).(relu); !ok {
		return nil, 0
	}
	l.rectify = true
	return l, 1
}

func (l groupNorm) For(in Shape) (Built, error) {
	s, err := picture(in, l.channels)
	if err != nil {
		return Built{}, err
	}
	if l.groups < 1 || l.channels%l.groups != 0 {
		return Built{}, fmt.Errorf("want groups of the same size")
	}
	return Built{Out: in, Params: scaleAndShift(l.channels), Make: func(r *Room) Step {
		norm := ops.NewGroupNorm(s, l.groups)
		return &groupNormStep{groupNorm: l, norm: norm, y: r.Values(s.Len()), stats: r.Values(norm.StatsLen())}
	}}, nil
}

type groupNormStep struct {
	groupNorm
	norm     *ops.GroupNorm
	x        tensor.Vector // of the last Forward
	y, stats tensor.Vector
}

// Forward implements Step.
func (s *groupNormStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	y, stats := s.y[:len(x)], s.stats[:p.Examples*s.norm.StatsLen()]
	forward := s.norm.Forward
	if s.rectify {
		forward = s.norm.ForwardRectify
	}
	forward(y, stats, x, w[:s.channels], w[s.channels:])
	return y
}

// Backward implements Step.
func (s *groupNormStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	scale, stats := w[:s.channels], s.stats[:p.Examples*s.norm.StatsLen()]
	if s.rectify {
		s.norm.GradientRectify(e, g[:s.channels], g[s.channels:], stats, s.x, s.y[:len(e)], e, scale)
	} else {
		s.norm.Gradient(e, g[:s.channels], g[s.channels:], stats, s.x, e, scale)
	}
	return e
}
