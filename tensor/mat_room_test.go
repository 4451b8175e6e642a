package tensor

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// roomShapes are the products of a training step, and some that are larger.
var roomShapes = []struct {
	m, n, k        int
	transA, transB bool
}{
	{64, 256, 784, false, false}, {784, 256, 64, true, false}, {64, 784, 256, false, true},
	{64, 10, 256, false, false}, {800, 32, 48, false, false}, {48, 32, 800, true, false},
	{600, 1500, 700, true, true}, {5000, 200, 4, true, false}, {5000, 40, 16, false, false},
	{1100, 1024, 400, false, false}, {1100, 300, 84, false, false}, {1, 1000, 1000, false, true},
}

func zeros(rows, cols int, transposed bool) Matrix {
	if transposed {
		return NewMatrix(cols, rows, make(Vector, rows*cols)).T()
	}
	return NewMatrix(rows, cols, make(Vector, rows*cols))
}

// TestMultiplierAllocatesNothing holds after the first products, on the caller's
// goroutine; and room stays within what its comment says.
func TestMultiplierAllocatesNothing(t *testing.T) {
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		for _, s := range roomShapes {
			a, b, c := zeros(s.m, s.k, s.transA), zeros(s.k, s.n, s.transB), zeros(s.m, s.n, false)
			multiply := func() { multiplier.multiply(tiler, c, 1, a, b, 1) }
			multiply()
			if allocs := testing.AllocsPerRun(10, multiply); allocs != 0 {
				t.Errorf("%v: %v allocations", s, allocs)
			}
		}
		r := &multiplier.rooms[0]
		bytes := ValueSize * (cap(r.tiles.panels) + cap(r.tiles.block) + cap(r.plain.a) + cap(r.plain.b) + cap(r.plain.c))
		if len(multiplier.rooms) != 1 || bytes >= 2<<20 {
			t.Errorf("%d rooms, the first of %d bytes", len(multiplier.rooms), bytes)
		}
		t.Logf("room: %d KiB", bytes>>10)
	})
}

// TestMultiplierSharesFew bounds what a product allocates that is shared.
func TestMultiplierSharesFew(t *testing.T) {
	multiplier := Multiplier{Threads: 2}
	a, b, c := zeros(200, 200, false), zeros(200, 200, false), zeros(200, 200, false)
	multiply := func() { multiplier.MatMul(c, 1, a, b, 0) }
	multiply()
	if len(multiplier.rooms) != 2 {
		t.Fatalf("%d goroutines shared the product, want 2", len(multiplier.rooms))
	}
	const each = 4 // a goroutine, what it is to do, and the group's
	if allocs := testing.AllocsPerRun(10, multiply); allocs > 2*each {
		t.Errorf("%v allocations for two goroutines", allocs)
	}
}
