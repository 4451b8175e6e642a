package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// result computes the same drawn product with strides, places in memory and
// threads of its own, and returns the elements.
func result(tiler kernel.Tiler, threads int, seed uint64, m, n, k int) []float64 {
	a, b, c := make(Vector, m*k), make(Vector, k*n), make(Vector, m*n)
	random := rand.New(rand.NewPCG(seed, 3))
	for _, v := range []Vector{a, b, c} {
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
	}
	places := rand.New(rand.NewPCG(seed, 10*uint64(tiler)+uint64(threads)))
	place := func(rows, cols int, data Vector) Matrix {
		h := hold(places, rows, cols, cols+places.IntN(9), false)
		if places.IntN(2) == 0 {
			h = hold(places, rows, cols, rows+places.IntN(9), true)
		}
		for i := range rows {
			for j := range cols {
				at := i*h.Stride + j
				if h.transposed {
					at = j*h.Stride + i
				}
				h.Data[at] = data[i*cols+j]
			}
		}
		return h.Matrix
	}
	multiplier, to := Multiplier{Threads: threads}, place(m, n, c)
	multiplier.multiply(tiler, to, 0.7, place(m, k, a), place(k, n, b), -0.3)
	return to.values()
}

// TestMatMulDependsOnSizesAlone compares results bit by bit: for one to four
// threads, for matrices at other places, with other strides and transposes, and
// for the instructions of AVX2 and AVX-512.
func TestMatMulDependsOnSizesAlone(t *testing.T) {
	sizes := [][3]int{{5, 3, 9}, {64, 10, 256}, {100, 120, 330}, {1, 300, 830}, {400, 1, 300}, {130, tileColumns + 40, 30}, {1300, 40, 17}, {48, 32, 800}}
	groups := map[string][]kernel.Tiler{"gonum": {0}, "microkernels": kernel.Tilers()}
	for name, tilers := range groups {
		t.Run(name, func(t *testing.T) {
			if len(tilers) == 0 {
				t.Skip("this CPU has no instructions that microkernels are written in")
			}
			for i, s := range sizes {
				want := result(tilers[0], 0, uint64(i), s[0], s[1], s[2])
				for _, tiler := range tilers {
					for threads := range 5 {
						if got := result(tiler, threads, uint64(i), s[0], s[1], s[2]); !slices.Equal(got, want) {
							t.Errorf("%v: the result of %s with %d threads differs", s, tiler, threads)
						}
					}
				}
			}
		})
	}
}

// TestMatMulOfTheSameNumbers holds microkernels and gonum's product to the same
// fixed problem, a layer of a network and its gradient: within 1e-5 of the largest
// element, so that machines of different kinds can train together.
func TestMatMulOfTheSameNumbers(t *testing.T) {
	for _, s := range [][3]int{{64, 256, 784}, {784, 256, 64}, {64, 10, 256}, {800, 32, 48}} {
		want := result(0, 0, 7, s[0], s[1], s[2])
		most := 0.0
		for _, w := range want {
			most = max(most, math.Abs(w))
		}
		for _, tiler := range kernel.Tilers() {
			for i, got := range result(tiler, 0, 7, s[0], s[1], s[2]) {
				if diff := math.Abs(got - want[i]); !(diff <= 1e-5*most) {
					t.Fatalf("%v: element %d is %v in %s, %v by gonum", s, i, got, tiler, want[i])
				}
			}
		}
	}
}
