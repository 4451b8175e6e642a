package ops_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// tolerance is for sums of products in float32, relative to the sum of the terms'
// magnitudes.
const tolerance = 1e-5

// guard is a NaN that no operation makes, before and after each vector of a test.
const (
	guard      = 0x7fa5a5a5
	guardWidth = 5
)

// room hands out vectors between guards, and checks that they stand.
type room struct{ blocks [][]float32 }

// vector starts where only one float32 is aligned.
func (r *room) vector(n int) tensor.Vector {
	block := make([]float32, n+2*guardWidth)
	for i := range block {
		block[i] = math.Float32frombits(guard)
	}
	r.blocks = append(r.blocks, block)
	return block[guardWidth : guardWidth+n : guardWidth+n]
}

// normal is a vector of normally distributed values.
func (r *room) normal(random *rand.Rand, n int) tensor.Vector {
	v := r.vector(n)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

func (r *room) check(t rapid.TB) {
	t.Helper()
	for i, block := range r.blocks {
		for j := range guardWidth {
			for _, at := range []int{j, len(block) - 1 - j} {
				if math.Float32bits(block[at]) != guard {
					t.Fatalf("vector %d: value %d of %d was overwritten", i, at-guardWidth, len(block)-2*guardWidth)
				}
			}
		}
	}
}

func wide(v tensor.Vector) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

func magnitudes(v []float64) []float64 {
	m := slices.Clone(v)
	for i := range m {
		m[i] = math.Abs(m[i])
	}
	return m
}

// near fails unless the values are within tolerance of want, relative to the terms'
// magnitudes (or to 1, where these are less).
func near(t rapid.TB, what string, got tensor.Vector, want, magnitude []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, g := range got {
		if diff := math.Abs(float64(g) - want[i]); !(diff <= tolerance*max(magnitude[i], 1)) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, g, want[i])
		}
	}
}

// ones are the magnitudes where values are of about that size.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func sameBits(t rapid.TB, what string, got, want tensor.Vector) {
	t.Helper()
	for i, g := range got {
		if math.Float32bits(g) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, g, want[i])
		}
	}
}

// slope is the derivative of f in the direction of value i of at, by differences on
// both sides.
func slope(f func() float64, at []float64, i int) float64 {
	const step = 1e-5
	before := at[i]
	at[i] = before + step
	up := f()
	at[i] = before - step
	down := f()
	at[i] = before
	return (up - down) / (2 * step)
}

// slopes compares a gradient with differences of f, at up to a few values.
func slopes(t rapid.TB, random *rand.Rand, what string, got tensor.Vector, f func() float64, at []float64, tolerance float64) {
	t.Helper()
	for range min(len(at), 12) {
		i := random.IntN(len(at))
		if want := slope(f, at, i); !(math.Abs(float64(got[i])-want) <= tolerance*max(1, math.Abs(want))) {
			t.Fatalf("%s: value %d is %v, by differences %v", what, i, got[i], want)
		}
	}
}

func dot(x []float64, y tensor.Vector) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * float64(y[i])
	}
	return sum
}

// drawShape draws sizes of all kinds: one pixel, odd ones, channels beside every
// vector's width.
func drawShape(t *rapid.T, most int) ops.Shape {
	return ops.Shape{
		Height:   rapid.IntRange(1, most).Draw(t, "height"),
		Width:    rapid.IntRange(1, 2*most).Draw(t, "width"),
		Channels: rapid.IntRange(1, 37).Draw(t, "channels"),
	}
}

func drawSource(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}
