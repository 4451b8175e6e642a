package tensor

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// NewBLAS returns gonum's BLAS with a Multiplier for the product of matrices, Sgemm; all
// its other functions are gonum's own. As gonum's, it shares large products among
// as many goroutines as run at once, and is safe for concurrent use. One line
// makes the products of a program that uses gonum fast:
//
//	blas32.Use(tensor.NewBLAS())
func NewBLAS() blas.Float32 {
	return &fastBLAS{multipliers: sync.Pool{New: func() any { return new(Multiplier) }}}
}

type fastBLAS struct {
	gonum.Implementation
	multipliers sync.Pool // of *Multiplier
}

// Sgemm sets c = alpha·op(a)·op(b) + beta·c. Arguments that gonum refuses have
// gonum panic.
func (f *fastBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if !accepted(tA, m, k, a, lda) || !accepted(tB, k, n, b, ldb) || !accepted(blas.NoTrans, m, n, c, ldc) || m == 0 || n == 0 {
		f.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	multiplier := f.multipliers.Get().(*Multiplier)
	multiplier.Threads = runtime.GOMAXPROCS(0)
	multiplier.MatMul(Matrix{Data: c, Rows: m, Cols: n, Stride: ldc}, alpha,
		Matrix{Data: a, Rows: m, Cols: k, Stride: lda, transposed: tA != blas.NoTrans},
		Matrix{Data: b, Rows: k, Cols: n, Stride: ldb, transposed: tB != blas.NoTrans}, beta)
	f.multipliers.Put(multiplier)
}

// accepted tells whether gonum takes a matrix that is rows by cols after what t
// says.
func accepted(t blas.Transpose, rows, cols int, data []float32, stride int) bool {
	switch t {
	case blas.NoTrans:
	case blas.Trans, blas.ConjTrans:
		rows, cols = cols, rows
	default:
		return false
	}
	return rows >= 0 && cols >= 0 && stride >= max(1, cols) && len(data) >= (rows-1)*stride+cols
}
