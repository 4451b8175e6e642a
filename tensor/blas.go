package tensor

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// NewBLAS returns an implementation of gonum's BLAS whose matrix product is
// MatMul, shared between as many goroutines as there are processors; all other
// functions are gonum's own. It is safe for concurrent use. One call makes
// gonum's float32 products fast:
//
//	blas32.Use(tensor.NewBLAS())
func NewBLAS() blas.Float32 {
	b := &fastBLAS{}
	b.multipliers.New = func() any { return &Multiplier{Threads: runtime.GOMAXPROCS(0)} }
	return b
}

type fastBLAS struct {
	gonum.Implementation
	multipliers sync.Pool // of *Multiplier
}

// Sgemm is gonum's, arguments and panics included.
func (f *fastBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if !sound(tA, m, k, a, lda) || !sound(tB, k, n, b, ldb) || !sound(blas.NoTrans, m, n, c, ldc) || m == 0 || n == 0 {
		// It panics, and says why, or has nothing to do.
		f.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	multiplier := f.multipliers.Get().(*Multiplier)
	multiplier.MatMul(Matrix{Data: c, Rows: m, Cols: n, Stride: ldc}, alpha,
		Matrix{Data: a, Rows: m, Cols: k, Stride: lda, transposed: tA != blas.NoTrans},
		Matrix{Data: b, Rows: k, Cols: n, Stride: ldb, transposed: tB != blas.NoTrans}, beta)
	f.multipliers.Put(multiplier)
}

// sound tells whether gonum accepts a matrix of rows by cols.
func sound(t blas.Transpose, rows, cols int, data []float32, stride int) bool {
	switch t {
	case blas.NoTrans:
	case blas.Trans, blas.ConjTrans:
		rows, cols = cols, rows
	default:
		return false
	}
	return rows >= 0 && cols >= 0 && stride >= max(1, cols) && len(data) >= (rows-1)*stride+cols
}
