package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// variant is one implementation of every kernel. Each test runs on all of them.
type variant struct {
	name             string
	add, sub         func(dst, x []float32)
	axpy             func(dst []float32, a float32, x []float32)
	scale            func(dst []float32, a float32)
	scaledDifference func(dst []float32, w float32, x, y []float32)
	dot, distance    func(x, y []float32) float64
	maxAbs           func(x []float32) float32
	finite           func(x []float32) bool
	bf16Encode       func(dst []byte, x []float32)
	bf16Decode       func(dst []float32, code []byte)
	fp16Decode       func(dst []float32, code []byte)
	bf16Finite       func(code []byte) bool
	float32Finite    func(code []byte) bool
	momentum         func(delta, velocity, grad, x []float32, c Momentum)
	nesterov         func(delta, velocity, grad, x []float32, c Momentum)
	adamW            func(delta, mean, square, grad, x []float32, c AdamW)
}

func variants() []variant {
	return []variant{
		{
			"plain Go", addGo, subGo, axpyGo, scaleGo, scaledDifferenceGo, dotGo, squaredDistanceGo,
			maxAbsGo, finiteGo, bf16EncodeGo, bf16DecodeGo, fp16DecodeGo, bf16FiniteGo, float32FiniteGo,
			momentumStepGo, nesterovStepGo, adamWStepGo,
		},
		{
			"exported", Add, Sub, Axpy, Scale, ScaledDifference, Dot, SquaredDistance,
			MaxAbs, Finite, BF16Encode, BF16Decode, FP16Decode, BF16Finite, Float32Finite,
			MomentumStep, NesterovStep, AdamWStep,
		},
	}
}

// maxLength covers every remainder of every unrolling, several times over.
const maxLength = 300

// forAll runs test for every variant and every length, with a source of values
// that depends on the length alone.
func forAll(t *testing.T, test func(t *testing.T, v variant, n int, random *rand.Rand)) {
	t.Helper()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			for n := range maxLength + 1 {
				test(t, v, n, rand.New(rand.NewPCG(1, uint64(n))))
				if t.Failed() {
					t.Fatalf("at length %d", n)
				}
			}
		})
	}
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
// magnitudes.
func near(t *testing.T, what string, got, want, magnitude float64) {
	t.Helper()
	if diff := math.Abs(got - want); !(diff <= 1e-12*magnitude) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func benchmark(b *testing.B, bytesPerValue int, run func(x, y, z []float32)) {
	for _, n := range []int{1 << 14, 1 << 20} { // 64 KiB, 4 MiB
		b.Run(fmt.Sprintf("%dKiB", 4*n>>10), func(b *testing.B) {
			random := rand.New(rand.NewPCG(2, 2))
			vectors := [3][]float32{}
			for i := range vectors {
				vectors[i] = make([]float32, n)
				for j := range vectors[i] {
					vectors[i][j] = float32(random.NormFloat64()) * 1e-3
				}
			}
			b.SetBytes(int64(bytesPerValue * n))
			b.ReportAllocs()
			for b.Loop() {
				run(vectors[0], vectors[1], vectors[2])
			}
		})
	}
}
