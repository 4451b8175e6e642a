package tensor

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Multiplier holds the room that products of matrices need, so that one which is
// kept allocates nothing after its first products. The zero value is ready; at
// most a few hundred KiB for each of Threads become its own. It is not for
// concurrent use.
type Multiplier struct {
	// Threads is how many goroutines share a large product, at most; with 0 or 1
	// all work is done by the caller's. The result does not depend on it.
	Threads int

	plain plainRoom
	tiles tileRoom
}

// MatMul sets c = alpha·a·b + beta·c with room of its own. Keep a Multiplier for
// more than a few products.
func MatMul(c Matrix, alpha float32, a, b Matrix, beta float32) {
	var m Multiplier
	m.MatMul(c, alpha, a, b, beta)
}

// MatMul sets c = alpha·a·b + beta·c. With beta = 0 it overwrites c, whatever was
// there; with alpha = 0 it does not read a and b. c must not overlap them. Any of
// the three may be transposed or empty.
//
// Each element is a sum in the order of the inner dimension, with one rounding
// for a product and its addition where the CPU has that; so results agree
// between CPUs within the rounding of float32, and on one CPU depend on the
// shape alone. A zero of a may hide a NaN or an infinity of b that it meets.
// Sizes that do not fit each other or their data are an error of the program and
// panic.
func (m *Multiplier) MatMul(c Matrix, alpha float32, a, b Matrix, beta float32) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows {
		panic(fmt.Sprintf("tensor: MatMul of %d by %d with %d by %d into %d by %d",
			a.Rows, a.Cols, b.Rows, b.Cols, c.Rows, c.Cols))
	}
	c.check("c", false)
	a.check("a", true)
	b.check("b", true)
	if c.transposed {
		c, a, b = c.T(), b.T(), a.T()
	}
	if alpha == 0 || a.Cols == 0 || c.Rows == 0 || c.Cols == 0 {
		c.scale(beta)
		return
	}
	if tiler := kernel.BestTiler(); tiler != 0 {
		m.tiles.multiply(tiler, c, alpha, a, b, beta)
	} else {
		m.plain.multiply(c, alpha, a, b, beta)
	}
}
