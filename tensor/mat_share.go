package tensor

import (
	"sync"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Goroutines share a product in strips. Each strip is whole tiles of the microkernels, and large enough to be worth
// the start of a goroutine.
const (
	stripRows  = 12
	stripCols  = 32
	stripWorth = 1 << 18 // multiplications: some microseconds
)

// share computes a product in strips of c's longer side; c is neither transposed nor empty. It never divides the
// inner dimension, so each element is the same sum for any number of goroutines.
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

// evenly returns the size of parts of n that differ as little as possible. A part is a multiple of whole, and at most
// most except for that rounding up.
func evenly(n, most, whole int) int {
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + whole - 1) / whole * whole
}
