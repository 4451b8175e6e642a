package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// maxLength covers every remainder of every unrolling, several times over.
const maxLength = 300

// forAll runs test for every variant and every length, with a source of values
// that depends on the length alone.
func forAll(t *testing.T, test func(t *testing.T, v variant, n int, random *rand.Rand)) {
	t.Helper()
	onAll(t, func(t *testing.T, v variant) {
		for n := range maxLength + 1 {
			test(t, v, n, rand.New(rand.NewPCG(1, uint64(n))))
			if t.Failed() {
				t.Fatalf("at length %d", n)
			}
		}
	})
}

// values returns n values of all magnitudes, the extremes and zeros among them,
// all finite.
func values(random *rand.Rand, n int) []float32 {
	extremes := []float32{
		0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
		math.MaxFloat32, -math.MaxFloat32, 1, -1, 0x1p-126,
	}
	x := make([]float32, n)
	for i := range x {
		switch random.IntN(8) {
		case 0:
			x[i] = extremes[random.IntN(len(extremes))]
		case 1:
			for { // any bits that are finite
				x[i] = math.Float32frombits(random.Uint32())
				if d := x[i] - x[i]; d == 0 {
					break
				}
			}
		default:
			x[i] = float32(random.NormFloat64())
		}
	}
	return x
}

// guardWord is a NaN that no kernel makes.
const guardWord = 0x7fa5a5a5

// guarded copies x into memory with guard words at both ends, and returns the
// copy and a check that they are untouched. The copy starts at an address that
// is aligned for one float32 only.
func guarded(t *testing.T, x []float32) (inside []float32, check func()) {
	t.Helper()
	const width = 5
	all := make([]float32, len(x)+2*width)
	for i := range all {
		all[i] = math.Float32frombits(guardWord)
	}
	inside = all[width : width+len(x)]
	copy(inside, x)
	return inside, func() {
		t.Helper()
		for i := range width {
			for _, at := range []int{i, len(all) - 1 - i} {
				if math.Float32bits(all[at]) != guardWord {
					t.Errorf("value %d of %d was overwritten", at-width, len(x))
				}
			}
		}
	}
}

// The oracle computes in float64 and rounds after every operation. For the four
// operations and the root, rounding twice gives the correctly rounded float32,
// so the kernels must agree bit for bit.

func round(x float64) float64 { return float64(float32(x)) }

func sameBits(t *testing.T, what string, got []float32, want func(i int) float64) {
	t.Helper()
	for i, g := range got {
		w := float32(want(i))
		if math.IsNaN(float64(w)) && math.IsNaN(float64(g)) {
			continue
		}
		if math.Float32bits(g) != math.Float32bits(w) {
			t.Errorf("%s: value %d is %v (%#x), want %v (%#x)",
				what, i, g, math.Float32bits(g), w, math.Float32bits(w))
			return
		}
	}
}

// near compares a sum with the oracle's: within 1e-12 of the sum of the terms'
// magnitudes, or both the same infinity.
func near(t *testing.T, what string, got, want, magnitude float64) {
	t.Helper()
	if diff := math.Abs(got - want); got != want && !(diff <= 1e-12*magnitude) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
