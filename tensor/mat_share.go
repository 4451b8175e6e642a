package tensor

import (
	"sync"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Strips of a product that goroutines share are whole tiles of the microkernels,
// and worth the start of a goroutine.
const (
	stripRows  = 12
	stripCols  = 32
	stripWorth = 1 << 18 // multiplications: some microseconds
)

// share computes a product whose c is not transposed and not empty, in strips of
// c's longer side. The inner dimension is never cut, so that every element is
// the same sum whoever computes it.
func (m *Multiplier) share(tiler kernel.Tiler, c Matrix, alpha float32, a, b Matrix, beta float32) {
	n, whole := c.Cols, stripCols
	byRows := c.Rows >= c.Cols
	if byRows {
		n, whole = c.Rows, stripRows
	}
	threads := max(1, min(m.Threads, c.Rows*c.Cols/whole*a.Cols/(stripWorth/whole)))
	size := evenly(n, (n+threads-1)/threads, whole)
	for len(m.rooms) < (n+size-1)/size {
		m.rooms = append(m.rooms, room{})
	}
	if size >= n {
		m.rooms[0].multiply(tiler, c, alpha, a, b, beta)
		return
	}
	var all sync.WaitGroup
	for i := range m.rooms[:(n+size-1)/size] {
		at := i * size
		length := min(size, n-at)
		all.Go(func() {
			if byRows {
				m.rooms[i].multiply(tiler, c.part(at, 0, length, c.Cols), alpha, a.part(at, 0, length, a.Cols), b, beta)
			} else {
				m.rooms[i].multiply(tiler, c.part(0, at, c.Rows, length), alpha, a, b.part(0, at, b.Rows, length), beta)
			}
		})
	}
	all.Wait()
}

// evenly returns the size of the parts of n, each at most most but for rounding up
// to whole, that differ the least.
func evenly(n, most, whole int) int {
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + whole - 1) / whole * whole
}
