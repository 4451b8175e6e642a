package kernel

import (
	"math/rand/v2"
	"testing"
)

// rowVariant is one implementation of the kernels that sum along rows.
type rowVariant struct {
	name                string
	missing             bool // this CPU cannot run it
	softmaxRows         func(x []float32, stats []float64, rows, n, kept int, factor, scale float32)
	softmaxRowsGradient func(grad, p []float32, rows, n, kept int, factor float32)
	addRowsGELU         func(x, slope, row []float32, rows int)
	layerNorm           func(dst, mean, inverse, x, scale, shift []float32, epsilon float32, rows int)
	layerNormGradient   func(dst, mean, inverse, grad, x, scale []float32, rows int)
	layerNormSums       func(scaleGrad, shiftGrad, mean, inverse, grad, x []float32, rows int)
}

func plainRows() rowVariant {
	return rowVariant{"plain Go", false, softmaxRowsGo, softmaxRowsGradientGo, addRowsGELUGo, layerNormGo, layerNormGradientGo, layerNormSumsGo}
}

// chosenRows are the functions that choose by the CPU.
func chosenRows() rowVariant {
	return rowVariant{"chosen", false, softmaxRows, softmaxRowsGradient, addRowsGELU, layerNorm, layerNormGradient, layerNormSums}
}

// onAllRows runs test for every variant that the CPU has, and says which it lacks.
func onAllRows(t *testing.T, test func(t *testing.T, v rowVariant)) {
	t.Helper()
	for _, v := range append([]rowVariant{plainRows(), chosenRows()}, assembledRows()...) {
		t.Run(v.name, func(t *testing.T) {
			if v.missing {
				t.Skip("this CPU lacks the instructions")
			}
			test(t, v)
		})
	}
}

// forDense runs test for every variant, for rows of every length to maxLength and some
// numbers of them.
func forDense(t *testing.T, test func(t *testing.T, v rowVariant, rows, n int, random *rand.Rand)) {
	t.Helper()
	onAllRows(t, func(t *testing.T, v rowVariant) {
		for n := 1; n <= maxLength; n++ {
			for _, rows := range []int{1, 3} {
				test(t, v, rows, n, rand.New(rand.NewPCG(uint64(rows), uint64(n))))
				if t.Failed() {
					t.Fatalf("at %d rows of %d", rows, n)
				}
			}
		}
	})
}

// TestNoRowKernelAllocates holds for the functions that choose and cut.
func TestNoRowKernelAllocates(t *testing.T) {
	const n, rows = 48, 400 // several pieces
	m := newNorm(rand.New(rand.NewPCG(7, 7)), rows, n)
	p, work := make([]float32, rows*n), make([]float32, rows*n)
	for name, do := range map[string]func(){
		"SoftmaxCausal":         func() { SoftmaxCausal(p, n, 0, 0.1) },
		"SoftmaxCausalGradient": func() { SoftmaxCausalGradient(work, p, n, 0, 0.1) },
		"CrossEntropy":          func() { CrossEntropy(work[:n], 3, 0.1) },
		"AddRowsGELU":           func() { AddRowsGELU(work, p, m.scale) },
		"LayerNorm":             func() { LayerNorm(work, m.mean, m.inverse, m.x, m.scale, m.shift, testEpsilon) },
		"LayerNormGradient": func() {
			LayerNormGradient(work, m.scaleGrad, m.shiftGrad, m.grad, m.x, m.mean, m.inverse, m.scale)
		},
	} {
		if allocs := testing.AllocsPerRun(10, do); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}
