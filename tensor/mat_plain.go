package tensor

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Blocks of a product that one call of gonum computes. gonum starts goroutines, and allocates, if the result has four
// or more blocks of 64×64; a result of two blocks stays on the caller's goroutine.
const (
	plainRows  = 64
	plainCols  = 128
	plainDepth = 256
)

// plainRoom is the memory for copies of blocks of A and B, and for a block's product.
type plainRoom struct{ a, b, c Vector }

// multiply is MatMul without microkernels. No matrix is empty, and c is not transposed.
func (r *plainRoom) multiply(c Matrix, alpha float32, a, b Matrix, beta float32) {
	for k := 0; k < a.Cols; k += plainDepth {
		depth := min(plainDepth, a.Cols-k)
		for j := 0; j < c.Cols; j += plainCols {
			cols := min(plainCols, c.Cols-j)
			partB := r.right(b.part(k, j, depth, cols))
			for i := 0; i < c.Rows; i += plainRows {
				rows := min(plainRows, c.Rows-i)
				r.block(c.part(i, j, rows, cols), alpha, r.left(a.part(i, k, rows, depth)), partB, beta)
			}
		}
		beta = 1
	}
}

// block is MatMul on blocks that gonum accepts. alpha and beta are applied to gonum's result: gonum would multiply a
// by alpha, so that the last digits of a transposed product would differ.
func (r *plainRoom) block(c Matrix, alpha float32, a, b Matrix, beta float32) {
	trans := blas.NoTrans
	if a.transposed {
		trans = blas.Trans
	}
	product := atLeast(&r.c, c.Rows*c.Cols)
	// blas32 is not used, since its implementation may be this package's.
	gonum.Implementation{}.Sgemm(trans, blas.NoTrans, c.Rows, c.Cols, a.Cols,
		1, a.Data, stride(a), b.Data, stride(b), 0, product, c.Cols)
	for i := range c.Rows {
		from, to := product[i*c.Cols:][:c.Cols], c.Data[i*c.Stride:][:c.Cols]
		if beta == 0 {
			copy(to, from)
			Scale(to, alpha)
		} else {
			Scale(to, beta)
			Axpy(to, alpha, from)
		}
	}
}

// stride returns the stride in the form that gonum requires even for a single row.
func stride(m Matrix) int {
	_, length := m.lines()
	return max(m.Stride, length)
}

// left returns a block of A that gonum accepts, a copy if rows overlap.
func (r *plainRoom) left(a Matrix) Matrix {
	count, length := a.lines()
	if count == 1 || a.Stride >= length {
		return a
	}
	dense := a
	dense.Data, dense.Stride = atLeast(&r.a, count*length), length
	for i := range count {
		copy(dense.Data[i*length:][:length], a.Data[i*a.Stride:])
	}
	return dense
}

// right returns an untransposed block of B that gonum accepts: for a transposed B gonum would use its inner product,
// which adds in an order that depends on alignment.
func (r *plainRoom) right(b Matrix) Matrix {
	count, length := b.lines()
	if !b.transposed && (count == 1 || b.Stride >= length) {
		return b
	}
	dense := Matrix{Data: atLeast(&r.b, b.Rows*b.Cols), Rows: b.Rows, Cols: b.Cols, Stride: b.Cols}
	step, next := b.Stride, 1
	if b.transposed {
		step, next = next, step
	}
	for i := range b.Rows {
		row := dense.Data[i*b.Cols:][:b.Cols]
		for j := range row {
			row[j] = b.Data[i*step+j*next]
		}
	}
	return dense
}
