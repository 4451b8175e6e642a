package ops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestMaxPoolEqualsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawShape(t, 6)
		in.Height, in.Width = in.Height+1, in.Width+1
		n := rapid.IntRange(1, 3).Draw(t, "pictures")
		layer := ops.NewMaxPool(in)
		var r room
		random, size := drawSource(t), n*layer.Out().Len()
		x := r.vector(n * in.Len())
		for i := range x { // few values, so that the largest is often there twice
			x[i] = float32(random.IntN(4)) - 2
		}
		e, y, plain, below := r.normal(random, size), r.vector(size), r.vector(size), r.normal(random, len(x))
		places := make([]byte, n*layer.PlacesLen()+1)
		const mark = 0x5a
		places[len(places)-1] = mark
		layer.Forward(y, places[:len(places)-1], x)
		layer.Forward(plain, nil, x)
		layer.Gradient(below, places[:len(places)-1], e)

		want, wantPlaces := pool(wide(x), in)
		near(t, "output", y, want, ones(size), 0)
		sameBits(t, "output without places", plain, y)
		if !slices.Equal(places, append(wantPlaces, mark)) {
			t.Fatalf("places are %v, want %v", places, wantPlaces)
		}
		near(t, "gradient", below, unpool(e, wantPlaces, in), ones(len(x)), 0)
		r.check(t)
	})
}

// unpool carries errors to their places.
func unpool(e tensor.Vector, places []byte, in ops.Shape) []float64 {
	per := in.Height / 2 * (in.Width / 2) * in.Channels
	below := make([]float64, len(e)/per*in.Len())
	for i, v := range e {
		c, pixel := i%in.Channels, i%per/in.Channels
		y, x := 2*(pixel/(in.Width/2))+int(places[i])/2, 2*(pixel%(in.Width/2))+int(places[i])%2
		below[i/per*in.Len()+(y*in.Width+x)*in.Channels+c] = float64(v)
	}
	return below
}

func TestGroupNormEqualsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t, 5)
		groups := rapid.SampledFrom(divisors(s.Channels)).Draw(t, "groups")
		n := rapid.IntRange(1, 3).Draw(t, "pictures")
		layer := ops.NewGroupNorm(s, groups)
		var r room
		random := drawSource(t)
		x, e := r.normal(random, n*s.Len()), r.normal(random, n*s.Len())
		for i := range x { // a mean that is not 0
			x[i] = 2*x[i] + 3
		}
		scale, shift := r.normal(random, s.Channels), r.normal(random, s.Channels)
		y, stats, below := r.vector(len(x)), r.vector(n*layer.StatsLen()), r.vector(len(x))
		toScale, toShift := r.vector(s.Channels), r.vector(s.Channels)
		clear(toScale)
		clear(toShift)
		layer.Forward(y, stats, x, scale, shift)
		layer.Gradient(below, toScale, toShift, stats, x, e, scale)

		x64, scale64, shift64 := wide(x), wide(scale), wide(shift)
		forward := func() []float64 { return normalize(x64, scale64, shift64, s, groups) }
		loss := func() float64 { return dot(forward(), e) }
		if s.Height*s.Width*s.Channels/groups > 4 { // else the variance may be next to none
			near(t, "output", y, forward(), ones(len(y)), 1e-4)
			slopes(t, random, "gradient over the input", below, loss, x64, 2e-3)
			slopes(t, random, "gradient over the scale", toScale, loss, scale64, 1e-3)
		}
		slopes(t, random, "gradient over the shift", toShift, loss, shift64, 1e-4)
		r.check(t)

		checkRectified(t, layer, s, x, e, scale, shift)
		layer.Forward(x, stats, x, scale, shift)
		sameBits(t, "output in place", x, y)
	})
}

// TestGroupNormOfFlatPictures: where there is hardly a difference between the values,
// the addition to the variance keeps them from growing without bounds.
func TestGroupNormOfFlatPictures(t *testing.T) {
	s := ops.Shape{Height: 4, Width: 4, Channels: 8}
	layer, random := ops.NewGroupNorm(s, 2), seeded(2)
	var r room
	scale, shift, e := r.normal(random, s.Channels), r.normal(random, s.Channels), r.normal(random, s.Len())
	y, stats, below := r.vector(s.Len()), r.vector(layer.StatsLen()), r.vector(s.Len())
	sums := make(tensor.Vector, 2*s.Channels)
	for _, spread := range []float32{0, 1e-3, 3e-3} {
		x := r.normal(random, s.Len())
		for i := range x {
			x[i] *= spread
		}
		layer.Forward(y, stats, x, scale, shift)
		layer.Gradient(below, sums[:s.Channels], sums[s.Channels:], stats, x, e, scale)
		x64 := wide(x)
		forward := func() []float64 { return normalize(x64, wide(scale), wide(shift), s, 2) }
		near(t, "output", y, forward(), ones(len(y)), 1e-5)
		slopes(t, random, "gradient", below, func() float64 { return dot(forward(), e) }, x64, 1e-3)
	}
}

// checkRectified compares the forms with a rectifier with the two operations.
func checkRectified(t *rapid.T, layer *ops.GroupNorm, s ops.Shape, x, e, scale, shift tensor.Vector) {
	var r room
	n, c := len(x), len(scale)
	y, z, below, together := r.vector(n), r.vector(n), slices.Clone(e), slices.Clone(e)
	sums, sumsTogether := make(tensor.Vector, 2*c), make(tensor.Vector, 2*c)
	stats := make(tensor.Vector, n/s.Len()*layer.StatsLen())
	layer.Forward(y, stats, x, scale, shift)
	ops.Rectify(y)
	ops.RectifyGradient(below, y)
	layer.Gradient(below, sums[:c], sums[c:], stats, x, below, scale)
	layer.ForwardRectify(z, stats, x, scale, shift)
	layer.GradientRectify(together, sumsTogether[:c], sumsTogether[c:], stats, x, z, together, scale)
	sameBits(t, "rectified output", z, y)
	sameBits(t, "gradient with a rectifier", together, below)
	sameBits(t, "gradients over scale and shift with a rectifier", sumsTogether, sums)
	r.check(t)
}

func divisors(n int) (list []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

func TestGlobalAverageEqualsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t, 6)
		n := rapid.IntRange(0, 3).Draw(t, "pictures")
		var r room
		random := drawSource(t)
		x, e := r.normal(random, n*s.Len()), r.normal(random, n*s.Channels)
		y, below := r.vector(n*s.Channels), r.vector(len(x))
		ops.GlobalAverage(y, x, s)
		ops.GlobalAverageGradient(below, e, s)
		want, wantBelow := make([]float64, len(y)), make([]float64, len(x))
		for i, v := range x {
			to := i/s.Len()*s.Channels + i%s.Channels
			want[to] += float64(v) / float64(s.Pixels())
			wantBelow[i] = float64(e[to]) / float64(s.Pixels())
		}
		near(t, "means", y, want, ones(len(y)), 1e-6)
		near(t, "gradient", below, wantBelow, ones(len(x)), 1e-6)
		r.check(t)
	})
}

func TestRowsEqualTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, c := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(1, 80).Draw(t, "columns")
		var r room
		random := drawSource(t)
		x, row, sum := r.normal(random, n*c), r.normal(random, c), r.normal(random, c)
		added, rectified, grad := slices.Clone(x), slices.Clone(x), r.normal(random, n*c)
		wantSum, wantGrad := wide(sum), wide(grad)
		wantAdded, wantRectified := make([]float64, n*c), make([]float64, n*c)
		for i, v := range x {
			wantAdded[i] = float64(v + row[i%c])
			wantRectified[i] = max(wantAdded[i], 0)
			wantSum[i%c] += float64(v)
			if wantAdded[i] <= 0 {
				wantGrad[i] = 0
			}
		}
		ops.AddRows(added, row)
		ops.AddRowsRectify(rectified, row)
		ops.AddSumRows(sum, x)
		ops.RectifyGradient(grad, rectified)
		near(t, "AddRows", added, wantAdded, ones(n*c), 0)
		near(t, "AddRowsRectify", rectified, wantRectified, ones(n*c), 0)
		near(t, "RectifyGradient", grad, wantGrad, ones(n*c), 0)
		near(t, "AddSumRows", sum, wantSum, magnitudes(wantSum), 1e-6)
		ops.Rectify(added)
		sameBits(t, "Rectify", added, rectified)
		r.check(t)
	})
}
