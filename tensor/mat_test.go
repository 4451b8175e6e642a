package tensor

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"pgregory.net/rapid"
)

// TestMatMulOfSmallSizes goes through all remainders of tiles, panels and unrolled
// loops, with strides, transposes, factors and places that are drawn for each.
func TestMatMulOfSmallSizes(t *testing.T) {
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		for m := range 27 {
			for n := range 50 {
				for _, k := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31} {
					p := draw(rand.New(rand.NewPCG(uint64(m), uint64(n*100+k))), m, n, k)
					multiplier.multiply(tiler, p.c.Matrix, p.alpha, p.a.Matrix, p.b.Matrix, p.beta)
					if p.check(t); t.Failed() {
						t.FailNow()
					}
				}
			}
		}
	})
}

// TestMatMulOfLargeSizes goes across the edges of all blocks.
func TestMatMulOfLargeSizes(t *testing.T) {
	sizes := [][3]int{
		{tileRows + 5, 300, tileDepth + 1},
		{2*tileRows + 1, 20, 2*tileDepth + 3},
		{40, tileColumns + 17, 100},
		{300, tileColumns + 9, 9},
		{3 * tileMost, 33, 3},
		{3 * tileMost, 2, 17},
		{150, 260, 700},
		{1, 2000, 400},
		{2000, 1, 400},
		{13, 7, 4000},
	}
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		for i, s := range sizes {
			for seed := range uint64(2) {
				p := draw(rand.New(rand.NewPCG(seed, uint64(i))), s[0], s[1], s[2])
				multiplier.multiply(tiler, p.c.Matrix, p.alpha, p.a.Matrix, p.b.Matrix, p.beta)
				if p.check(t); t.Failed() {
					t.FailNow()
				}
			}
		}
	})
}

// TestMatMulAgrees draws sizes of all orders, and threads.
func TestMatMulAgrees(t *testing.T) {
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 130))
			m, n := size.Draw(t, "m"), size.Draw(t, "n")
			k := rapid.OneOf(size, rapid.SampledFrom([]int{255, 256, 320, 321})).Draw(t, "k")
			p := draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), m, n, k)
			multiplier.Threads = rapid.IntRange(0, 3).Draw(t, "threads")
			multiplier.multiply(tiler, p.c.Matrix, p.alpha, p.a.Matrix, p.b.Matrix, p.beta)
			p.check(t)
		})
	})
}

// TestMatMulOfConvolution is a convolution of three values as a product whose
// rows overlap.
func TestMatMulOfConvolution(t *testing.T) {
	signal, weights := Vector{1, 2, 3, 4, 5}, Vector{1, 10, 100}
	out := make(Vector, 3)
	windows := Matrix{Data: signal, Rows: 3, Cols: 3, Stride: 1}
	new(Multiplier).MatMul(NewMatrix(3, 1, out), 1, windows, NewMatrix(3, 1, weights), 0)
	if want := (Vector{321, 432, 543}); out[0] != want[0] || out[1] != want[1] || out[2] != want[2] {
		t.Errorf("the convolution is %v, want %v", out, want)
	}
}
