package dataset

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// Rows of numbers come out of batches as they went in, each once in a pass.
func TestRowsOfNumbers(t *testing.T) {
	set, err := NewRows(tensor.Vector{1, -1, 2, -2, 3, -3}, []uint8{0, 1, 0}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	batches, err := (&Data{Train: set, HeldOut: set, Total: 3}).Batches(3, 1, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := batches.Next(&b); err != nil {
		t.Fatal(err)
	}
	var seen []float32
	for i := range b.Len() {
		seen = append(seen, b.X[2*i])
		if b.X[2*i+1] != -b.X[2*i] || b.Labels[i] != uint8(1-int(b.X[2*i])%2) {
			t.Errorf("row %d: %v of class %d", i, b.row(i, 2), b.Labels[i])
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, []float32{1, 2, 3}) {
		t.Errorf("a pass shows %v", seen)
	}
	sub := set.Subset([]int32{2, 1})
	if sub.Fill(&b, 0, 2); !slices.Equal(b.X, tensor.Vector{3, -3, 2, -2}) || sub.Label(1) != 1 {
		t.Errorf("a subset: %v", b.X)
	}
	if sub.Fingerprint() == set.Fingerprint() {
		t.Error("other rows have the same fingerprint")
	}
	for name, err := range map[string]error{
		"too few numbers": second(NewRows(tensor.Vector{1}, []uint8{0}, 2, 2)),
		"no such class":   second(NewRows(tensor.Vector{1, 2}, []uint8{2}, 2, 2)),
		"missing":         second(NewRows(tensor.Vector{1, float32(math.NaN())}, []uint8{0}, 2, 2)),
		"no numbers":      second(NewRows(nil, []uint8{0}, 0, 2)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ *Set, err error) error { return err }
