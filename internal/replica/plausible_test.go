package replica_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// A gradient that others would refuse counts as none in the own sum too, to which it is not
// sent: one that is added leaves what is there, and one that begins a sum leaves it empty.
func TestLoadLeavesOutWhatNobodyTakes(t *testing.T) {
	a := smallAveragers(t, 1)[0]
	a.put(t, rand.New(rand.NewPCG(1, 1)), 3)
	if err := a.Load(0, 1, false, false); err != nil {
		t.Fatal(err)
	}
	want := make(tensor.Vector, a.Len())
	if weight := a.Drain(want, 0, 1, 0); weight != 3 {
		t.Fatalf("a sum of weight %g", weight)
	}
	if err := a.Load(0, 1, false, false); err != nil {
		t.Fatal(err)
	}
	long := make(tensor.Vector, a.Len())
	long[3] = 1e9
	if err := a.PutRange(long, 0, len(long), 5); err != nil {
		t.Fatal(err)
	}
	if err := a.Load(0, 1, true, false); !errors.Is(err, replica.ErrDiverged) {
		t.Errorf("adding a gradient of 1e9: %v", err)
	}
	got := make(tensor.Vector, a.Len())
	if weight := a.Drain(got, 0, 1, 0); weight != 3 || sharedOf(got)[0] != sharedOf(want)[0] {
		t.Errorf("the sum has changed: weight %g, %v", weight, got)
	}
	if err := a.Load(0, 1, false, false); !errors.Is(err, replica.ErrDiverged) {
		t.Errorf("beginning with a gradient of 1e9: %v", err)
	}
	if weight := a.Drain(got, 0, 1, 0); weight != 0 {
		t.Errorf("a sum of weight %g of nothing", weight)
	}
}
