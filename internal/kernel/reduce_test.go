package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestReductionsEqualTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		x, checkX := guarded(t, values(random, n))
		y, checkY := guarded(t, values(random, n))
		var squares, distance, largest float64
		for i := range x {
			a, b := float64(x[i]), float64(y[i])
			squares += a * a
			distance += (a - b) * (a - b)
			largest = max(largest, math.Abs(a))
		}
		near(t, "SumSquares", v.squares(x), squares, squares)
		near(t, "SquaredDistance", v.distance(x, y), distance, distance)
		if got := v.maxAbs(x); float64(got) != largest {
			t.Errorf("MaxAbs is %v, want %v", got, largest)
		}
		if !v.finite(x) {
			t.Error("finite values are not Finite")
		}
		checkX()
		checkY()
	})
}

// TestOneValueNotFinite puts each kind of value that is not finite at each
// place: none may hide in the remainder of an unrolled loop.
func TestOneValueNotFinite(t *testing.T) {
	bad := []uint32{0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff}
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		if n > 40 {
			return
		}
		x := values(random, n)
		for i := range x {
			kept := x[i]
			for _, bits := range bad {
				x[i] = math.Float32frombits(bits)
				if v.finite(x) {
					t.Errorf("%#x at %d is Finite", bits, i)
				}
				largest := v.maxAbs(x)
				if nan := bits<<1 > 0xff000000; nan != math.IsNaN(float64(largest)) {
					t.Errorf("with %#x at %d, MaxAbs is %v", bits, i, largest)
				} else if !nan && !math.IsInf(float64(largest), 1) {
					t.Errorf("with %#x at %d, MaxAbs is %v", bits, i, largest)
				}
			}
			x[i] = kept
		}
	})
}

// TestSumsDoNotOverflow: the squares of the largest float32 have no float32.
func TestSumsDoNotOverflow(t *testing.T) {
	x := []float32{math.MaxFloat32, -math.MaxFloat32, math.MaxFloat32}
	want := 3 * math.Pow(math.MaxFloat32, 2)
	near(t, "SumSquares", SumSquares(x), want, want)
}
