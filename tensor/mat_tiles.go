package tensor

import (
	"unsafe"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Sizes of blocks. A panel of B stays in the L1 cache while a block of A is multiplied with it; a block of A stays in
// the L2 cache while all panels are.
const (
	tileDepth   = 400  // depth of a block, at most; blocks share the depth evenly
	tileRows    = 200  // rows of a block of A of that depth
	tileMost    = 1024 // rows of a block of smaller depth, at most
	tileColumns = 1024 // columns of panels that are kept for the next block of A
)

// tileRoom is the memory for products by microkernels.
type tileRoom struct {
	panels Vector // of B, packed
	block  Vector // of A, copied
}

// cacheLine is the alignment of that memory, in values.
const cacheLine = 64 / ValueSize

// atLeast returns size values that begin at a cache line. It uses the memory of v if that is enough, else it replaces
// v.
func atLeast(v *Vector, size int) Vector {
	if len(*v) < size {
		all := make(Vector, size+cacheLine)
		skip := -uintptr(unsafe.Pointer(&all[0])) / ValueSize % cacheLine
		*v = all[skip:][:size]
	}
	return (*v)[:size]
}

// multiply is MatMul by microkernels. No matrix is empty, and c is not transposed. The division of the depth into
// sums depends on the depth alone.
func (r *tileRoom) multiply(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	const unroll, tile = 4, 12 // steps of depth, and rows, that microkernels take at a time
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

// worthCopying tells whether a product with that many columns of B is faster on a copy of a block of A. With a long
// stride the original needs many pages, and its lines share few sets of the cache, above all if each step of the
// depth reads another line.
func worthCopying(a Matrix, columns int) bool {
	if a.transposed {
		return columns > 128
	}
	return columns >= 256 && a.Rows >= 128
}

// copied returns a copy of a block of A. Each of its rows has an odd number of whole cache lines, so that rows spread
// over the sets of the cache.
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
