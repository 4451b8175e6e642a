package tensor

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Multiplier holds the memory for products of matrices: reused, it allocates nothing after its first products. The
// zero value is ready. Its memory stays below 2 MiB for each of Threads. It is not for concurrent use.
type Multiplier struct {
	// Threads bounds the goroutines that share a large product; with 0 or 1 the product is computed on the caller's.
	// The result does not depend on it.
	Threads int

	rooms []room
}

// room is the memory for one goroutine.
type room struct {
	tiles tileRoom
	plain plainRoom
}

// MatMul sets c = alpha·a·b + beta·c. With beta = 0 it overwrites c without reading it; with alpha = 0 it does not
// read a and b. All three may be transposed or empty; c must not overlap the others.
//
// Each element is a sum in the order of the inner dimension, in float32. It depends only on
// the sizes, not on Threads, strides or alignment. With AVX2 or AVX-512 a product is not
// rounded before it is added, with the same result for both. Elsewhere (and under the
// purego build tag) it is rounded, so the last digits differ, and a zero in a hides a NaN
// or an infinity in b.
//
// Sizes that do not fit each other or the data are an error of the program: MatMul panics.
func (m *Multiplier) MatMul(c Matrix, alpha float32, a, b Matrix, beta float32) {
	m.multiply(kernel.BestTiler(), c, alpha, a, b, beta)
}

// multiply is MatMul with the microkernels of a tiler, or with gonum's product.
func (m *Multiplier) multiply(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows {
		panic(fmt.Sprintf("tensor: MatMul of %d by %d and %d by %d into %d by %d",
			a.Rows, a.Cols, b.Rows, b.Cols, c.Rows, c.Cols))
	}
	c.check("c", true)
	a.check("a", false)
	b.check("b", false)
	switch {
	case c.Rows == 0 || c.Cols == 0:
	case alpha == 0 || a.Cols == 0:
		c.scale(beta)
	case c.transposed:
		m.share(tiler, c.T(), alpha, b.T(), a.T(), beta)
	case c.Cols == 1 && c.Stride == 1: // treated as a row, which makes use of whole vectors
		row := Matrix{Data: c.Data, Rows: 1, Cols: c.Rows, Stride: c.Rows}
		m.share(tiler, row, alpha, b.T(), a.T(), beta)
	default:
		m.share(tiler, c, alpha, a, b, beta)
	}
}

func (r *room) multiply(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	if tiler == 0 {
		r.plain.multiply(c, alpha, a, b, beta)
	} else {
		r.tiles.multiply(tiler, c, alpha, a, b, beta)
	}
}
