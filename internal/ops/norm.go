package ops

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// normEpsilon is added to a variance before its square root is taken.
const normEpsilon = 1e-5

// GroupNorm shifts and scales the values of each group of channels of a picture to mean 0 and variance 1, then scales
// and shifts each channel (Wu and He 2018). The result for a picture does not depend on the rest of its batch, so no
// statistics are averaged over time or between peers.
type GroupNorm struct {
	shape  Shape
	groups int
	// Memory for one value for each channel. Sums are in float64, so that the variance, a difference of means, keeps
	// its digits.
	sum, product     []float64
	toScale, toShift []float64
	a, b, shift      tensor.Vector
}

// NewGroupNorm returns the normalization of pictures of a shape, whose channels are divided into groups of equal
// size.
func NewGroupNorm(s Shape, groups int) *GroupNorm {
	s.mustBeSound("ops: NewGroupNorm")
	if groups < 1 || s.Channels%groups != 0 {
		panic(fmt.Sprintf("ops: NewGroupNorm of %d channels in %d groups", s.Channels, groups))
	}
	n := s.Channels
	return &GroupNorm{
		shape: s, groups: groups,
		sum: make([]float64, n), product: make([]float64, n),
		toScale: make([]float64, n), toShift: make([]float64, n),
		a: make(tensor.Vector, n), b: make(tensor.Vector, n), shift: make(tensor.Vector, n),
	}
}

// StatsLen is the number of values of a picture's statistics.
func (g *GroupNorm) StatsLen() int { return 2 * g.groups }

// Forward sets out, which may be in, to the normalized pictures, and stats, StatsLen values for each picture, to the
// mean and 1/deviation of each group.
func (g *GroupNorm) Forward(out, stats, in, scale, shift tensor.Vector) {
	g.forward("GroupNorm.Forward", out, stats, in, scale, shift, kernel.ScaleRows)
}

// ForwardRectify is Forward followed by Rectify, which is applied while each picture is in the cache.
func (g *GroupNorm) ForwardRectify(out, stats, in, scale, shift tensor.Vector) {
	g.forward("GroupNorm.ForwardRectify", out, stats, in, scale, shift, kernel.ScaleRowsRectify)
}

func (g *GroupNorm) forward(op string, out, stats, in, scale, shift tensor.Vector, last func(dst, x, scale, shift []float32)) {
	n := pictures(op, len(in), g.shape.Len())
	wantLen(op, len(out), len(in))
	wantLen(op, len(stats), n*g.StatsLen())
	wantLen(op, len(scale), g.shape.Channels)
	wantLen(op, len(shift), g.shape.Channels)
	for i := range n {
		x := part(in, i, g.shape.Len())
		clear(g.sum)
		clear(g.product)
		kernel.SumSquareRows(g.sum, g.product, x)
		g.normalize(part(stats, i, g.StatsLen()), scale, shift)
		last(part(out, i, g.shape.Len()), x, g.a, g.shift)
	}
}

// normalize computes a picture's statistics from its sums and sums of squares, and from these the factor and the
// shift of each channel.
func (g *GroupNorm) normalize(stats, scale, shift tensor.Vector) {
	size, count := g.sizes()
	for group := range g.groups {
		sum, squares := 0.0, 0.0
		for c := group * size; c < (group+1)*size; c++ {
			sum += g.sum[c]
			squares += g.product[c]
		}
		mean := sum / count
		inverse := 1 / math.Sqrt(max(squares/count-float64(mean*mean), 0)+normEpsilon)
		stats[2*group], stats[2*group+1] = float32(mean), float32(inverse)
		for c := group * size; c < (group+1)*size; c++ {
			a := float64(inverse * float64(scale[c]))
			g.a[c], g.shift[c] = float32(a), float32(float64(shift[c])-float64(mean*a))
		}
	}
}

// sizes returns the number of channels of a group, and of its values in a picture.
func (g *GroupNorm) sizes() (channels int, values float64) {
	return g.shape.Channels / g.groups, float64(g.shape.Len() / g.groups)
}

// Gradient sets below, the gradient over the input, and adds the gradients over
// scale and shift, from the input, its statistics and the gradient over the output.
// below may be errors.
func (g *GroupNorm) Gradient(below, addScale, addShift, stats, in, errors, scale tensor.Vector) {
	g.gradient("GroupNorm.Gradient", below, addScale, addShift, stats, in, nil, errors, scale)
}

// GradientRectify is the gradient of ForwardRectify: it applies RectifyGradient to errors with out, then Gradient,
// while each picture is in the cache. below may be errors; errors change in any case.
func (g *GroupNorm) GradientRectify(below, addScale, addShift, stats, in, out, errors, scale tensor.Vector) {
	const op = "GroupNorm.GradientRectify"
	wantLen(op, len(out), len(in))
	g.gradient(op, below, addScale, addShift, stats, in, out, errors, scale)
}

func (g *GroupNorm) gradient(op string, below, addScale, addShift, stats, in, out, errors, scale tensor.Vector) {
	n := pictures(op, len(in), g.shape.Len())
	wantLen(op, len(below), len(in))
	wantLen(op, len(errors), len(in))
	wantLen(op, len(stats), n*g.StatsLen())
	wantLen(op, len(scale), g.shape.Channels)
	wantLen(op, len(addScale), g.shape.Channels)
	wantLen(op, len(addShift), g.shape.Channels)
	clear(g.toScale)
	clear(g.toShift)
	for i := range n {
		x, e := part(in, i, g.shape.Len()), part(errors, i, g.shape.Len())
		if out != nil {
			kernel.RectifyGradient(e, part(out, i, g.shape.Len()))
		}
		clear(g.sum)
		clear(g.product)
		kernel.SumProductRows(g.sum, g.product, e, x)
		g.differentiate(part(stats, i, g.StatsLen()), scale)
		kernel.CombineRows(part(below, i, g.shape.Len()), e, x, g.a, g.b, g.shift)
	}
	for c := range addScale {
		addScale[c] += float32(g.toScale[c])
		addShift[c] += float32(g.toShift[c])
	}
}

// differentiate adds a picture's part of the gradients over scale and shift, and computes the factors of errors and
// input in the gradient over the input:
//
//	normal = (input - mean) * inverse
//	below = inverse * (scale*error - mean(scale*error) - normal*mean(scale*error*normal))
//
// The means are over a group.
func (g *GroupNorm) differentiate(stats, scale tensor.Vector) {
	size, count := g.sizes()
	for group := range g.groups {
		mean, inverse := float64(stats[2*group]), float64(stats[2*group+1])
		errorSum, normalSum := 0.0, 0.0
		for c := group * size; c < (group+1)*size; c++ {
			normal := float64((g.product[c] - float64(mean*g.sum[c])) * inverse)
			g.toScale[c] += normal
			g.toShift[c] += g.sum[c]
			errorSum += float64(float64(scale[c]) * g.sum[c])
			normalSum += float64(float64(scale[c]) * normal)
		}
		b := -inverse * inverse * normalSum / count
		offset := float32(float64(-inverse*errorSum/count) - float64(mean*b))
		for c := group * size; c < (group+1)*size; c++ {
			g.a[c], g.b[c], g.shift[c] = float32(inverse*float64(scale[c])), float32(b), offset
		}
	}
}
