package replica

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// sliced is a replica of so many slices of one value.
func sliced(t *testing.T, n int, clock func() time.Duration) *Replica {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: 1, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSweepLeavesBusySlicesForLast, so that a trainer does other slices while an
// exchange is at work on one, and waits for nothing if that ends in the meantime.
func TestSweepLeavesBusySlicesForLast(t *testing.T) {
	const n = 6
	r := sliced(t, n, func() time.Duration { t.Error("it waits"); return 0 })
	r.slices[1].Lock()
	r.slices[4].Lock()
	var order []int
	waited := r.sweep(func(s *slice) {
		order = append(order, s.offset)
		if s.offset == n-1 {
			r.slices[1].Unlock()
			r.slices[4].Unlock()
		}
	})
	if want := []int{0, 2, 3, 5, 1, 4}; !slices.Equal(order, want) || waited != 0 {
		t.Errorf("order %v, want %v; waited %v", order, want, waited)
	}
}

// TestSweepWaitsForTooManyBusySlices: there is a bound to how many it remembers, and
// what it waits is measured.
func TestSweepWaitsForTooManyBusySlices(t *testing.T) {
	const n = 2 * maxDeferred
	var r *Replica
	now := time.Duration(0)
	r = sliced(t, n, func() time.Duration {
		if now += time.Second; now == time.Second { // it begins to wait: the exchange lets go
			for i := range r.slices {
				r.slices[i].Unlock()
			}
		}
		return now
	})
	for i := range r.slices {
		r.slices[i].Lock()
	}
	seen := map[int]int{}
	waited := r.sweep(func(s *slice) { seen[s.offset]++ })
	for i := range n {
		if seen[i] != 1 {
			t.Errorf("slice %d was done %d times", i, seen[i])
		}
	}
	if waited != time.Second {
		t.Errorf("waited %v", waited)
	}
}
