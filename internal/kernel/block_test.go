package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for n := range 70 {
		for _, block := range []int{1, 2, 7, 16, 33, 64, 1000, math.MaxInt} {
			x, checkX := guarded(t, values(random, n))
			count := len(slices.Collect(slices.Chunk(x, block)))
			most, checkMost := guarded(t, make([]float32, count))
			lo, checkLo := guarded(t, make([]float32, count))
			hi, checkHi := guarded(t, make([]float32, count))
			BlockMaxAbs(most, x, block)
			BlockRange(lo, hi, x, block)
			at := 0
			for b := range slices.Chunk(x, block) {
				low, high := b[0], b[0]
				for _, value := range b {
					low, high = min(low, value), max(high, value)
				}
				one := func(x float32) func(int) float64 { return func(int) float64 { return float64(x) } }
				sameBits(t, "BlockMaxAbs", most[at:at+1], one(max(high, -low)))
				sameBits(t, "lo of BlockRange", lo[at:at+1], one(low))
				sameBits(t, "hi of BlockRange", hi[at:at+1], one(high))
				at++
			}
			for _, check := range []func(){checkX, checkMost, checkLo, checkHi} {
				check()
			}
			if t.Failed() {
				t.Fatalf("%d values in blocks of %d", n, block)
			}
		}
	}
}

// TestBlocksNotFinite: a NaN shows wherever it is, whatever its sign.
func TestBlocksNotFinite(t *testing.T) {
	onAll(t, func(t *testing.T, v variant) {
		for at := range 40 {
			for _, bits := range []uint32{0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff} {
				x := slices.Repeat([]float32{float32(math.Inf(1)), -1}, 20)
				x[at] = math.Float32frombits(bits)
				if low, high := v.extent(x); low == low && high == high {
					t.Errorf("with %#x at %d, the range is %v to %v", bits, at, low, high)
				}
			}
		}
	})
}
