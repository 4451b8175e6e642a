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
	layerNorm           func(dst, mean, inverse, x, scale, shift []float32, epsilon float32, rows int)
	layerNormGradient   func(dst, mean, inverse, grad, x, scale []float32, rows int)
	layerNormSums       func(scaleGrad, shiftGrad, mean, inverse, grad, x []float32, rows int)
}

func plainRows() rowVariant {
	return rowVariant{"plain Go", false, softmaxRowsGo, softmaxRowsGradientGo, layerNormGo, layerNormGradientGo, layerNormSumsGo}
}

// chosenRows are the functions that choose by the CPU.
func chosenRows() rowVariant {
	return rowVariant{"chosen", false, softmaxRows, softmaxRowsGradient, layerNorm, layerNormGradient, layerNormSums}
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
