package tensor

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Blocks of a product that one call of gonum computes. It starts goroutines, and
// allocates, for a result of four or more blocks of 64×64; two stay on the
// caller's goroutine.
const (
	plainRows  = 64
	plainCols  = 128
	plainDepth = 256
)

// plainRoom is the room for blocks of matrices whose rows overlap, which gonum
// refuses: they are copied.
type plainRoom struct{ a, b Vector }

// multiply is MatMul as gonum computes it, where there is no assembly. c is not
// transposed.
func (r *plainRoom) multiply(c Matrix, alpha float32, a, b Matrix, beta float32) {
	for i := 0; i < c.Rows; i += plainRows {
		rows := min(plainRows, c.Rows-i)
		for j := 0; j < c.Cols; j += plainCols {
			cols := min(plainCols, c.Cols-j)
			r.block(c.part(i, j, rows, cols), alpha, a.part(i, 0, rows, a.Cols), b.part(0, j, b.Rows, cols), beta)
		}
	}
}

func (r *plainRoom) block(c Matrix, alpha float32, a, b Matrix, beta float32) {
	for k := 0; k == 0 || k < a.Cols; k += plainDepth {
		depth := min(plainDepth, a.Cols-k)
		partA := separate(&r.a, a.part(0, k, a.Rows, depth))
		partB := separate(&r.b, b.part(k, 0, depth, b.Cols))
		gonum.Implementation{}.Sgemm(transposition(a), transposition(b), c.Rows, c.Cols, depth,
			alpha, partA.Data, partA.Stride, partB.Data, partB.Stride, beta, c.Data, max(c.Stride, c.Cols))
		beta = 1
	}
}

func transposition(m Matrix) blas.Transpose {
	if m.transposed {
		return blas.Trans
	}
	return blas.NoTrans
}

// separate returns m with rows that do not overlap: m itself, or a copy in room.
func separate(room *Vector, m Matrix) Matrix {
	count, length := m.lines()
	if count <= 1 {
		m.Stride = max(m.Stride, length, 1)
	}
	if m.Stride >= max(length, 1) {
		return m
	}
	if len(*room) < count*length {
		*room = make(Vector, count*length)
	}
	from := m
	m.Data, m.Stride = (*room)[:count*length], max(length, 1)
	for i := range count {
		copy(m.Data[i*length:(i+1)*length], from.Data[i*from.Stride:])
	}
	return m
}
