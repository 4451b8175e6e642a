package nn

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// normEpsilon is added to a variance before its root is taken.
const normEpsilon = 1e-5

// GroupNorm gives the values of each group of channels of a picture the mean 0 and
// the variance 1, then scales and shifts each channel (Wu and He 2018). A picture's
// result does not depend on the others in its batch, so nothing has to be averaged
// over time, or between peers.
type GroupNorm struct {
	shape  Shape
	groups int
}

// NewGroupNorm makes the normalization of pictures of a shape, whose channels fall
// into so many groups of equal size.
func NewGroupNorm(s Shape, groups int) *GroupNorm {
	s.mustBeSound("NewGroupNorm")
	if groups < 1 || s.Channels%groups != 0 {
		panic(fmt.Sprintf("nn: NewGroupNorm of %d channels in %d groups", s.Channels, groups))
	}
	return &GroupNorm{shape: s, groups: groups}
}

// StatsLen is the number of values that keep a picture's statistics.
func (g *GroupNorm) StatsLen() int { return 2 * g.groups }

// Forward sets out, which may be in, to the normalized pictures, and stats, StatsLen
// values a picture, to the mean and the inverse deviation of each group.
func (g *GroupNorm) Forward(out, stats, in, scale, shift tensor.Vector) {
	n := pictures("GroupNorm.Forward", len(in), g.shape.Len())
	wantLen("GroupNorm.Forward", len(out), len(in))
	wantLen("GroupNorm.Forward", len(stats), n*g.StatsLen())
	wantLen("GroupNorm.Forward", len(scale), g.shape.Channels)
	wantLen("GroupNorm.Forward", len(shift), g.shape.Channels)
	for i := range n {
		for group := range g.groups {
			sum, squares := 0.0, 0.0
			g.walk(i, group, func(at, c int) {
				sum += float64(in[at])
				squares += float64(in[at]) * float64(in[at])
			})
			mean := sum / g.count()
			inverse := 1 / math.Sqrt(max(squares/g.count()-mean*mean, 0)+normEpsilon)
			stats[i*g.StatsLen()+2*group] = float32(mean)
			stats[i*g.StatsLen()+2*group+1] = float32(inverse)
			g.walk(i, group, func(at, c int) {
				out[at] = float32((float64(in[at])-mean)*inverse)*scale[c] + shift[c]
			})
		}
	}
}

// Gradient sets below, the gradient over the input, and adds the gradients over
// scale and shift, from the input, its statistics and the gradient over the output.
// below may be errors.
func (g *GroupNorm) Gradient(below, addScale, addShift, stats, in, errors, scale tensor.Vector) {
	n := pictures("GroupNorm.Gradient", len(in), g.shape.Len())
	wantLen("GroupNorm.Gradient", len(below), len(in))
	wantLen("GroupNorm.Gradient", len(errors), len(in))
	wantLen("GroupNorm.Gradient", len(stats), n*g.StatsLen())
	wantLen("GroupNorm.Gradient", len(scale), g.shape.Channels)
	wantLen("GroupNorm.Gradient", len(addScale), g.shape.Channels)
	wantLen("GroupNorm.Gradient", len(addShift), g.shape.Channels)
	for i := range n {
		for group := range g.groups {
			mean := float64(stats[i*g.StatsLen()+2*group])
			inverse := float64(stats[i*g.StatsLen()+2*group+1])
			pull, turn := 0.0, 0.0
			g.walk(i, group, func(at, c int) {
				normal := (float64(in[at]) - mean) * inverse
				e := float64(errors[at])
				addScale[c] += float32(e * normal)
				addShift[c] += float32(e)
				pull += e * float64(scale[c])
				turn += e * float64(scale[c]) * normal
			})
			pull, turn = pull/g.count(), turn/g.count()
			g.walk(i, group, func(at, c int) {
				normal := (float64(in[at]) - mean) * inverse
				below[at] = float32(inverse * (float64(errors[at])*float64(scale[c]) - pull - normal*turn))
			})
		}
	}
}

// count is the number of values in a group of a picture.
func (g *GroupNorm) count() float64 { return float64(g.shape.Len() / g.groups) }

// walk visits the values of one group of a picture, with their channels.
func (g *GroupNorm) walk(picture, group int, visit func(at, c int)) {
	size := g.shape.Channels / g.groups
	for p := range g.shape.Pixels() {
		for c := group * size; c < (group+1)*size; c++ {
			visit(picture*g.shape.Len()+p*g.shape.Channels+c, c)
		}
	}
}
