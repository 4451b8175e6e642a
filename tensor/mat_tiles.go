package tensor

import (
	"unsafe"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Blocking: a panel of B, so deep, stays in the first cache, and a block of A, as
// deep, in the second.
const (
	tileDepth = 320       // at most; the depth is shared evenly among blocks
	blockSize = 256 * 320 // values of A that all panels of B meet before the next
)

// tileRoom is what a goroutine needs for the products of microkernels.
type tileRoom struct {
	panel Vector // of B, packed; aligned to a line of the cache
}

// panelValues is the size of a packed panel.
const panelValues = tileDepth * 32

func (r *tileRoom) prepare() {
	const line = 64
	if r.panel == nil {
		room := make(Vector, panelValues+line/ValueSize)
		skip := -uintptr(unsafe.Pointer(&room[0])) % line / ValueSize
		r.panel = room[skip:][:panelValues]
	}
}

// depthOf returns how deep the blocks are, which depends on the depth alone.
func depthOf(depth int) int {
	const whole = 4 // the microkernels' main loops take so many at a time
	blocks := (depth + tileDepth - 1) / tileDepth
	return ((depth+blocks-1)/blocks + whole - 1) / whole * whole
}

// multiply is MatMul on microkernels. No matrix is empty, and c is not transposed.
func (r *tileRoom) multiply(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	r.prepare()
	deep := depthOf(a.Cols)
	rows := max(blockSize/deep, 1)
	for i := 0; i < c.Rows; i += rows {
		m := min(rows, c.Rows-i)
		partC, lines := c.part(i, 0, m, c.Cols), a.part(i, 0, m, a.Cols)
		factor := beta
		for k := 0; k < a.Cols; k += deep {
			depth := min(deep, a.Cols-k)
			r.block(tiler, partC, alpha, lines.part(0, k, m, depth), b.part(k, 0, depth, b.Cols), factor)
			factor = 1
		}
	}
}

// block is the product with a block of a.
func (r *tileRoom) block(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	p := kernel.GemmPanel{
		A: &a.Data[0], Room: &r.panel[0], CStep: ValueSize * c.Stride, BStep: ValueSize * b.Stride,
		Rows: c.Rows, Depth: a.Cols, Alpha: alpha, Beta: beta,
	}
	if a.transposed {
		p.RowStep, p.DepthStep = ValueSize, ValueSize*a.Stride
	} else {
		p.RowStep, p.DepthStep = ValueSize*a.Stride, ValueSize
	}
	wide, narrow := tiler.Columns()
	for j := 0; j < c.Cols; j += wide {
		columns := min(wide, c.Cols-j)
		p.C = &c.Data[j]
		if b.transposed {
			width := wide
			if columns <= narrow {
				width = narrow
			}
			const eight = 8
			for g := 0; g < columns; g += eight {
				tiler.Transpose(&r.panel[g], width*ValueSize, &b.Data[(j+g)*b.Stride], ValueSize*b.Stride, min(eight, columns-g), b.Rows)
			}
		} else {
			p.B, p.Pack = &b.Data[j], 1
		}
		tiler.Multiply(&p, columns)
	}
}
