package stats

import "testing"

// TestAges shows what bucket an age falls into.
func TestAges(t *testing.T) {
	var a Ages
	for _, steps := range []uint64{0, 1, 2, 3, 4, 1 << 40} {
		a.Add(steps)
	}
	if a.Counts != [maxAges]uint64{0: 1, 1: 1, 2: 2, 3: 1, maxAges - 1: 1} {
		t.Errorf("buckets %v", a.Counts)
	}
	for i, want := range []uint64{0, 1, 3, 7} {
		if a.Bound(i) != want {
			t.Errorf("bucket %d goes up to %d steps, want %d", i, a.Bound(i), want)
		}
	}
}
