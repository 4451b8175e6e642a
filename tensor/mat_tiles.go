package tensor

import (
	"unsafe"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Blocking. A panel of B stays in the first cache while a block of A passes it; a
// block of A stays in the second while all panels pass.
const (
	tileDepth   = 400  // of a block, at most; the depth is shared evenly among blocks
	tileRows    = 200  // of a block of A that is so deep
	tileMost    = 1024 // rows of a shallower one
	tileColumns = 1024 // of panels that are kept for the next block of A
)

// tileRoom is the room for products of microkernels.
type tileRoom struct {
	panels Vector // of B, packed
	block  Vector // of A, copied
}

// cacheLine is the alignment of the room, in values.
const cacheLine = 64 / ValueSize

// atLeast returns size values that begin a line of the cache: those of v, if they
// are enough, or else others in their place.
func atLeast(v *Vector, size int) Vector {
	if len(*v) < size {
		all := make(Vector, size+cacheLine)
		skip := -uintptr(unsafe.Pointer(&all[0])) / ValueSize % cacheLine
		*v = all[skip:][:size]
	}
	return (*v)[:size]
}

// multiply is MatMul on microkernels. No matrix is empty, and c is not transposed.
// How the depth is cut into sums follows from the depth alone.
func (r *tileRoom) multiply(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	const unroll, tile = 4, 12 // what microkernels take at a time
	deep := evenly(a.Cols, tileDepth, unroll)
	rows := evenly(c.Rows, min(tileRows*tileDepth/deep, tileMost), tile)
	for j := 0; j < c.Cols; j += tileColumns {
		n := min(tileColumns, c.Cols-j)
		factor := beta
		for k := 0; k < a.Cols; k += deep {
			depth := min(deep, a.Cols-k)
			panels := r.panelsOf(tiler, b.part(k, j, depth, n), rows < c.Rows)
			for i := 0; i < c.Rows; i += rows {
				m := min(rows, c.Rows-i)
				block := a.part(i, k, m, depth)
				if worthCopying(a, n) {
					block = r.copied(tiler, block)
				}
				panels.multiply(c.part(i, j, m, n), alpha, block, factor)
				panels.packed = panels.kept
			}
			factor = 1
		}
	}
}

// worthCopying tells whether so many columns of B make up for copying a block of A.
// It spares them misses: a long stride needs many pages, and many lines of few
// sets of the cache; all the more if it is taken at every step of the depth.
func worthCopying(a Matrix, columns int) bool {
	if a.transposed {
		return columns > 128
	}
	return columns >= 256 && a.Rows >= 128
}

// copied returns a copy of a block of A whose rows are whole lines of the cache,
// an odd number of them, so that they spread over its sets.
func (r *tileRoom) copied(tiler kernel.Tiler, a Matrix) Matrix {
	lines := (a.Cols+cacheLine-1)/cacheLine | 1
	c := Matrix{Rows: a.Rows, Cols: a.Cols, Stride: lines * cacheLine}
	c.Data = atLeast(&r.block, a.Rows*c.Stride)
	if a.transposed {
		const most = 8
		for k := 0; k < a.Cols; k += most {
			tiler.Transpose(&c.Data[k], ValueSize*c.Stride, &a.Data[k*a.Stride], ValueSize*a.Stride, min(most, a.Cols-k), a.Rows)
		}
		return c
	}
	for i := range a.Rows {
		copy(c.Data[i*c.Stride:][:a.Cols], a.Data[i*a.Stride:])
	}
	return c
}
