package nets

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// panelRows and panelCols bound the part of a product that is computed by one
// call. gonum starts goroutines, and allocates, for a result of four or more
// blocks of 64×64; two stay on the caller's goroutine. One peer is one core:
// those of a machine are filled by its peers, not by one peer's products.
const (
	panelRows = 64
	panelCols = 128
)

// multiply sets c = op(a)·op(b), where op transposes or does not. It skips the
// zeros of an a that b follows untransposed, which is why pictures with an empty
// background are quick to learn from.
func multiply(transA, transB blas.Transpose, a, b, c blas32.General) {
	for i := 0; i < c.Rows; i += panelRows {
		m := min(panelRows, c.Rows-i)
		panelA := panel(a, transA == blas.NoTrans, i, m)
		for j := 0; j < c.Cols; j += panelCols {
			n := min(panelCols, c.Cols-j)
			panelB := panel(b, transB == blas.Trans, j, n)
			blas32.Gemm(transA, transB, 1, panelA, panelB, 0, columns(rows(c, i, m), j, n))
		}
	}
}

func panel(a blas32.General, byRow bool, from, n int) blas32.General {
	if byRow {
		return rows(a, from, n)
	}
	return columns(a, from, n)
}

// rows is the view of n rows of a.
func rows(a blas32.General, from, n int) blas32.General {
	return blas32.General{Rows: n, Cols: a.Cols, Stride: a.Stride, Data: a.Data[from*a.Stride:]}
}

// columns is the view of n columns of a.
func columns(a blas32.General, from, n int) blas32.General {
	return blas32.General{Rows: a.Rows, Cols: n, Stride: a.Stride, Data: a.Data[from:]}
}

// matrix is a dense matrix over data, row by row.
func matrix(rows, cols int, data []float32) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}
