package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// TestMatMulPassesOnWhatIsNotFinite puts a NaN or an infinity into one element of
// a or b: it reaches the row or the column that it belongs to, and nothing else.
func TestMatMulPassesOnWhatIsNotFinite(t *testing.T) {
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		for seed := range uint64(300) {
			random := rand.New(rand.NewPCG(seed, 1))
			m, n, k := 1+random.IntN(40), 1+random.IntN(40), 1+random.IntN(40)
			p := draw(random, m, n, k)
			p.a, p.alpha = hold(random, m, k, k+3, false), 1 // rows of their own
			p.b = hold(random, k, n, n+1, false)
			bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[random.IntN(3)]
			row, column := -1, -1
			if l := random.IntN(k); random.IntN(2) == 0 {
				row = random.IntN(m)
				p.a.Data[row*p.a.Stride+l] = bad
			} else {
				column = random.IntN(n)
				p.b.Data[l*p.b.Stride+column] = bad
			}
			multiplier.multiply(tiler, p.c.Matrix, p.alpha, p.a.Matrix, p.b.Matrix, p.beta)
			for i, got := range p.c.values() {
				finite := !math.IsNaN(got) && !math.IsInf(got, 0)
				if reached := i/n == row || i%n == column; finite == reached {
					t.Fatalf("seed %d: element (%d, %d) of %d by %d is %v; %v was at row %d or column %d",
						seed, i/n, i%n, m, n, got, bad, row, column)
				}
			}
		}
	})
}

// TestMatMulDoesNotReadWhatItNeedNot has NaN in c, which a zero beta overwrites,
// and in a and b, which a zero alpha leaves alone.
func TestMatMulDoesNotReadWhatItNeedNot(t *testing.T) {
	nan := func(m Matrix) {
		for i := range m.Data {
			m.Data[i] = float32(math.NaN())
		}
	}
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		for seed := range uint64(50) {
			random := rand.New(rand.NewPCG(seed, 2))
			m, n, k := 1+random.IntN(40), 1+random.IntN(40), random.IntN(700)
			var multiplier Multiplier
			c, a, b := make(Vector, m*n), make(Vector, m*k), make(Vector, k*n)
			nan(NewMatrix(m, n, c))
			zero := []float32{0, float32(math.Copysign(0, -1))}[random.IntN(2)]
			multiplier.multiply(tiler, NewMatrix(m, n, c), 1, NewMatrix(m, k, a), NewMatrix(k, n, b), zero)
			if !Finite(c) {
				t.Fatalf("seed %d: a NaN of c survived beta = 0", seed)
			}
			nan(NewMatrix(m, k, a))
			nan(NewMatrix(k, n, b))
			multiplier.multiply(tiler, NewMatrix(m, n, c), zero, NewMatrix(m, k, a), NewMatrix(k, n, b), 1)
			if !Finite(c) {
				t.Fatalf("seed %d: a NaN of a or b came through alpha = 0", seed)
			}
		}
	})
}

// TestMatMulRefuses has sizes that do not fit each other or their data.
func TestMatMulRefuses(t *testing.T) {
	data := make(Vector, 12)
	good := NewMatrix(3, 4, data)
	for name, call := range map[string]func(){
		"NewMatrix of another size":  func() { NewMatrix(3, 5, data) },
		"NewMatrix of negative size": func() { NewMatrix(-3, -4, data) },
		"inner dimensions": func() {
			new(Multiplier).MatMul(NewMatrix(3, 3, make(Vector, 9)), 1, good, NewMatrix(3, 3, make(Vector, 9)), 0)
		},
		"rows of c":    func() { new(Multiplier).MatMul(NewMatrix(4, 3, make(Vector, 12)), 1, good, good.T(), 0) },
		"columns of c": func() { new(Multiplier).MatMul(NewMatrix(3, 2, make(Vector, 6)), 1, good, good.T(), 0) },
		"short a": func() {
			new(Multiplier).MatMul(square(3), 1, Matrix{Data: data[:11], Rows: 3, Cols: 4, Stride: 4}, good.T(), 0)
		},
		"short transposed b": func() {
			new(Multiplier).MatMul(square(3), 1, good, Matrix{Data: data[:11], Rows: 3, Cols: 4, Stride: 4}.T(), 0)
		},
		"short c": func() {
			new(Multiplier).MatMul(Matrix{Data: data[:8], Rows: 3, Cols: 3, Stride: 3}, 1, good, good.T(), 0)
		},
		"rows of c that overlap": func() { new(Multiplier).MatMul(Matrix{Data: data, Rows: 3, Cols: 3, Stride: 2}, 1, good, good.T(), 0) },
		"a negative stride": func() {
			new(Multiplier).MatMul(square(3), 1, Matrix{Data: data, Rows: 3, Cols: 4, Stride: -1}, good.T(), 0)
		},
		"a negative size": func() {
			new(Multiplier).MatMul(Matrix{Rows: -1, Cols: 3}, 1, Matrix{Rows: -1, Cols: 4}, NewMatrix(4, 3, data), 0)
		},
		"a size that overflows": func() {
			new(Multiplier).MatMul(square(3), 1, Matrix{Data: data, Rows: 3, Cols: 4, Stride: math.MaxInt / 2}, good.T(), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing was refused")
				}
			}()
			call()
		})
	}
}

func square(n int) Matrix { return NewMatrix(n, n, make(Vector, n*n)) }
