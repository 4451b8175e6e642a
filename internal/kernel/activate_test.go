package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// curve is a function of one variable that kernels compute, with its oracle and the
// error that is allowed.
type curve struct {
	name     string
	of       func(v variant) func(dst, x []float32)
	want     func(x float64) float64
	relative float64 // of the value, if not 0
	absolute float64 // as a share of max(1, |x|)
}

func normalBelow(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func logistic64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// slope has a gradient kernel give the derivative at x.
func slope(run func(grad, x []float32)) func(dst, x []float32) {
	return func(dst, x []float32) {
		x = slices.Clone(x)
		for i := range dst {
			dst[i] = 1
		}
		run(dst, x)
	}
}

func curves() []curve {
	return []curve{
		{"Exp", func(v variant) func(dst, x []float32) { return v.exp }, math.Exp, 1.2e-7, 0},
		{"GELU", func(v variant) func(dst, x []float32) { return v.gelu },
			func(x float64) float64 { return x * normalBelow(x) }, 0, 3e-7},
		{"GELUGradient", func(v variant) func(dst, x []float32) { return slope(v.geluGradient) },
			func(x float64) float64 {
				return normalBelow(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
			}, 0, 5e-7},
		{"SiLU", func(v variant) func(dst, x []float32) { return v.silu },
			func(x float64) float64 { return x * logistic64(x) }, 4e-7, 0},
		{"SiLUGradient", func(v variant) func(dst, x []float32) { return slope(v.siluGradient) },
			func(x float64) float64 { s := logistic64(x); return s * (1 + x*(1-s)) }, 0, 1e-6},
		{"Sigmoid", func(v variant) func(dst, x []float32) { return v.sigmoid }, logistic64, 2e-7, 0},
		{"Tanh", func(v variant) func(dst, x []float32) { return v.tanh }, math.Tanh, 2e-7, 0},
	}
}

// TestCurvesAreNear compares with float64, from where exponentials are 0 to where they
// overflow, and around 0.
func TestCurvesAreNear(t *testing.T) {
	const n = 20_011
	random := rand.New(rand.NewPCG(22, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = 180*float32(i)/n - 90
		if i%2 == 1 {
			x[i] = float32(random.NormFloat64())
		}
	}
	onAll(t, func(t *testing.T, v variant) {
		for _, c := range curves() {
			got, check := guarded(t, x)
			c.of(v)(got, x)
			check()
			for i, g := range got {
				at := float64(x[i])
				want := c.want(at)
				bound := max(c.relative*math.Abs(want), c.absolute*max(1, math.Abs(at)), 0x1p-119)
				if off := math.Abs(float64(g) - want); off > bound && !(want > math.MaxFloat32 && math.IsInf(float64(g), 1)) {
					t.Errorf("%s(%v) is %v, want %v within %.2g", c.name, x[i], g, want, bound)
					break
				}
			}
		}
	})
}

// TestEndsOfCurves: NaN stays, whatever stands beside it, and the ends are as said.
func TestEndsOfCurves(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name string
		of   func(v variant) func(dst, x []float32)
		want [7]float32
	}{
		{"Exp", func(v variant) func(dst, x []float32) { return v.exp }, [7]float32{0, 0, 0, inf, inf, nan, 1}},
		{"GELU", func(v variant) func(dst, x []float32) { return v.gelu }, [7]float32{0, 0, 0, 3e38, inf, nan, 0}},
		{"GELUGradient", func(v variant) func(dst, x []float32) { return slope(v.geluGradient) }, [7]float32{0, 0, 0, 1, 1, nan, 0.5}},
		{"SiLU", func(v variant) func(dst, x []float32) { return v.silu }, [7]float32{nan, 0, 0, 3e38, inf, nan, 0}},
		{"Sigmoid", func(v variant) func(dst, x []float32) { return v.sigmoid }, [7]float32{0, 0, 0, 1, 1, nan, 0.5}},
		{"Tanh", func(v variant) func(dst, x []float32) { return v.tanh }, [7]float32{-1, -1, -1, 1, 1, nan, 0}},
	} {
		onAll(t, func(t *testing.T, v variant) {
			x := []float32{-inf, -3e38, -100, 3e38, inf, nan, 0}
			for n := range 40 {
				many := make([]float32, n)
				for i := range many {
					many[i] = x[(i+n)%len(x)]
				}
				c.of(v)(many, many)
				for i, g := range many {
					w := c.want[(i+n)%len(x)]
					if g != w && !(g != g && w != w) && !(math.Abs(float64(g-w)) <= 2e-7) {
						t.Fatalf("%s(%v), value %d of %d, is %v, want %v", c.name, x[(i+n)%len(x)], i, n, g, w)
					}
				}
			}
		})
	}
}

// TestAddRowsGELUEqualsTheTwo: the function and its slope have the bits of GELU and
// GELUGradient at the sums.
func TestAddRowsGELUEqualsTheTwo(t *testing.T) {
	forDense(t, func(t *testing.T, v rowVariant, rows, n int, random *rand.Rand) {
		x0, row := values(random, rows*n), values(random, n)
		x0[0] = float32(math.NaN())
		x, checkX := guarded(t, x0)
		slopes, checkSlopes := guarded(t, make([]float32, rows*n))
		v.addRowsGELU(x, slopes, row, rows)
		checkX()
		checkSlopes()
		addRowsGo(x0, row, rows)
		want := make([]float32, len(x0))
		slope(geluGradientGo)(want, x0)
		sameBits(t, "the slope", slopes, func(i int) float64 { return float64(want[i]) })
		geluGo(want, x0)
		sameBits(t, "the function", x, func(i int) float64 { return float64(want[i]) })
	})
}
