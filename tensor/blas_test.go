package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// outcome calls Sgemm and returns what it left in c, and what it panicked with.
func outcome(b blas.Float32Level3, tA, tB blas.Transpose, size [6]int, lengths [3]int, beta float32) (c []float32, failure any) {
	fill := func(n int) []float32 {
		v := make([]float32, max(n, 0))
		for i := range v {
			v[i] = float32(i%7 - 3)
		}
		return v
	}
	c = fill(lengths[2])
	defer func() { failure = recover() }()
	b.Sgemm(tA, tB, size[0], size[1], size[2], 2, fill(lengths[0]), size[3], fill(lengths[1]), size[4], beta, c, size[5])
	return c, nil
}

// TestBLASIsGonums compares outcomes for arguments around those that are right,
// panics and their texts included: small integers have one product.
func TestBLASIsGonums(t *testing.T) {
	ours, theirs := NewBLAS(), gonum.Implementation{}
	transposes := []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans, 'x'}
	random := rand.New(rand.NewPCG(1, 4))
	panics := map[any]int{}
	for range 40_000 {
		tA, tB := transposes[random.IntN(4)*random.IntN(2)], transposes[random.IntN(4)*random.IntN(2)]
		m, n, k := random.IntN(6)-1, random.IntN(6)-1, random.IntN(6)-1
		rowsA, colsA, rowsB, colsB := m, k, k, n
		if tA != blas.NoTrans {
			rowsA, colsA = k, m
		}
		if tB != blas.NoTrans {
			rowsB, colsB = n, k
		}
		near := func(n int) int {
			if random.IntN(8) == 0 {
				return n - 1
			}
			return n + random.IntN(2)
		}
		size := [6]int{m, n, k, near(max(1, colsA)), near(max(1, colsB)), near(max(1, n))}
		lengths := [3]int{near((rowsA-1)*size[3] + colsA), near((rowsB-1)*size[4] + colsB), near((m-1)*size[5] + n)}
		beta := float32(random.IntN(3))
		got, gotPanic := outcome(ours, tA, tB, size, lengths, beta)
		want, wantPanic := outcome(theirs, tA, tB, size, lengths, beta)
		if fmt.Sprint(gotPanic) != fmt.Sprint(wantPanic) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%c %c %v, lengths %v, beta %v: %v (%v), gonum's is %v (%v)",
				tA, tB, size, lengths, beta, got, gotPanic, want, wantPanic)
		}
		panics[wantPanic]++
	}
	if len(panics) < 11 { // none, 1 of transposes, 3 of sizes, 3 of strides, 3 of lengths
		t.Errorf("only these outcomes were met: %v", panics)
	}
}

// TestBLASInUse has gonum use it, from several goroutines. It must not come back
// to itself where it relies on gonum.
func TestBLASInUse(t *testing.T) {
	before := blas32.Implementation()
	blas32.Use(NewBLAS())
	defer blas32.Use(before)
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 5))
			for range 20 {
				general := func(rows, cols int) blas32.General {
					g := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
					for i := range g.Data {
						g.Data[i] = float32(random.IntN(9) - 4)
					}
					return g
				}
				m, n, k := 1+random.IntN(150), 1+random.IntN(150), 1+random.IntN(150)
				a, b, got, want := general(m, k), general(n, k), general(m, n), general(m, n)
				blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, b, 0, got)
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, m, n, k, 1, a.Data, k, b.Data, k, 0, want.Data, n)
				for i := range want.Data {
					if math.Float32bits(got.Data[i]) != math.Float32bits(want.Data[i]) {
						t.Errorf("%d by %d by %d: element %d is %v, want %v", m, n, k, i, got.Data[i], want.Data[i])
						return
					}
				}
			}
		})
	}
	all.Wait()
}
