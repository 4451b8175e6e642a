package replica

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhatWaitsComesWithACommit: a replica that defers stays as it is until a commit, which
// adds everything once; what waits for a model that is replaced is dropped.
func TestWhatWaitsComesWithACommit(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{3}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: 2})
	if err != nil {
		t.Fatal(err)
	}
	r.Defer(true)
	x := make(tensor.Vector, 3)
	holds := func(when string, want ...float32) {
		t.Helper()
		if r.Snapshot(x); !slices.Equal(x, want) {
			t.Errorf("%s it is %v, want %v", when, x, want)
		}
	}
	r.Add(tensor.Vector{1, 2, 3})
	r.Add(tensor.Vector{1, 1, 1})
	holds("before the commit", 0, 0, 0)
	r.Commit()
	holds("after it", 2, 3, 4)
	r.Commit()
	holds("after another", 2, 3, 4)
	r.Add(tensor.Vector{9, 9, 9})
	if err := r.Replace(tensor.Vector{5, 6, 7}); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	holds("as another model", 5, 6, 7)
}
