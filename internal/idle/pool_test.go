package idle

import (
	"slices"
	"testing"
)

func TestPoolKeepsSoMany(t *testing.T) {
	built := 0
	pool := NewPool(2, func() *int { built++; n := built; return &n })
	var out []*int
	for range 3 {
		out = append(out, pool.Take())
	}
	if built != 3 {
		t.Fatalf("three were in use at once, and %d were made", built)
	}
	for _, v := range out {
		pool.Put(v)
	}
	var again []int
	for range 3 {
		again = append(again, *pool.Take())
	}
	if want := []int{1, 2, 4}; !slices.Equal(again, want) {
		t.Errorf("a pool of two gave %v, want %v", again, want)
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	pool := NewPool(1, func() *int { return new(int) })
	pool.Put(pool.Take())
	if n := testing.AllocsPerRun(100, func() { pool.Put(pool.Take()) }); n != 0 {
		t.Errorf("taking and putting back allocates %v times", n)
	}
}
