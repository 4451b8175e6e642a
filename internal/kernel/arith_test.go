package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestElementwiseEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		d, x, y := values(random, n), values(random, n), values(random, n)
		a := values(random, 1)[0]
		f := func(x []float32, i int) float64 { return float64(x[i]) }
		for _, c := range []struct {
			name string
			run  func(dst, x, y []float32)
			want func(i int) float64
		}{
			{"Add", func(dst, x, _ []float32) { v.add(dst, x) },
				func(i int) float64 { return f(d, i) + f(x, i) }},
			{"Sub", func(dst, x, _ []float32) { v.sub(dst, x) },
				func(i int) float64 { return f(d, i) - f(x, i) }},
			{"Axpy", func(dst, x, _ []float32) { v.axpy(dst, a, x) },
				func(i int) float64 { return f(d, i) + round(float64(a)*f(x, i)) }},
			{"Scale", func(dst, _, _ []float32) { v.scale(dst, a) },
				func(i int) float64 { return f(d, i) * float64(a) }},
			{"ScaledDifference", func(dst, x, y []float32) { v.scaledDifference(dst, a, x, y) },
				func(i int) float64 { return float64(a) * round(f(x, i)-f(y, i)) }},
		} {
			dst, check := guarded(t, d)
			xs, checkX := guarded(t, x)
			ys, checkY := guarded(t, y)
			c.run(dst, xs, ys)
			sameBits(t, c.name, dst, c.want)
			check()
			checkX()
			checkY()
			if !slices.Equal(xs, x) || !slices.Equal(ys, y) {
				t.Errorf("%s changed a vector that it only reads", c.name)
			}
		}
	})
}

// TestNoFusedMultiplyAdd uses a product whose rounding error alone is the
// answer, which a fused multiply-add would return instead of zero. Only builds
// that can fuse (arm64, GOAMD64=v3) are able to fail it.
func TestNoFusedMultiplyAdd(t *testing.T) {
	onAll(t, func(t *testing.T, v variant) {
		const a, x = 1 + 0x1p-12, 1 + 0x1p-12
		rounded := round(float64(a) * float64(x))
		dst := slices.Repeat([]float32{float32(-rounded)}, 33)
		v.axpy(dst, a, slices.Repeat([]float32{x}, 33))
		sameBits(t, "Axpy", dst, func(int) float64 { return 0 })
	})
}

func TestElementwiseAliasing(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		x, y := values(random, n), values(random, n)
		f := func(x []float32, i int) float64 { return float64(x[i]) }

		dst := slices.Clone(x)
		v.add(dst, dst)
		sameBits(t, "Add to itself", dst, func(i int) float64 { return 2 * f(x, i) })
		dst = slices.Clone(x)
		v.sub(dst, dst)
		sameBits(t, "Sub from itself", dst, func(i int) float64 { return f(x, i) - f(x, i) })
		difference := func(i int) float64 { return 0.5 * round(f(x, i)-f(y, i)) }
		dst = slices.Clone(x)
		v.scaledDifference(dst, 0.5, dst, y)
		sameBits(t, "ScaledDifference into x", dst, difference)
		dst = slices.Clone(y)
		v.scaledDifference(dst, 0.5, x, dst)
		sameBits(t, "ScaledDifference into y", dst, difference)
		dst = slices.Clone(x)
		distance := v.scaledDistance(dst, 0.5, dst, y)
		sameBits(t, "ScaledDistance into x", dst, difference)
		var want float64
		for i := range x {
			d := round(f(x, i) - f(y, i))
			want += d * d
		}
		if !math.IsInf(want, 1) { // a difference of large values has no float32
			near(t, "ScaledDistance", distance, want, want)
		} else if distance != want {
			t.Errorf("ScaledDistance is %v, want %v", distance, want)
		}
	})
}
