package replica

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestChangesOfAnyLengthLeaveAFiniteModel: one that would leave it infinite, or such that
// nobody would take what is sent of it, is not believed, as often as it comes, nor however
// slowly the model grows up to it; what is frozen does not count.
func TestChangesOfAnyLengthLeaveAFiniteModel(t *testing.T) {
	const huge = 3e38
	mixed := func() *Replica {
		layout, err := tensor.NewLayout(
			tensor.Spec{Name: "shared", Shape: []int{4}},
			tensor.Spec{Name: "local", Shape: []int{4}, Sharing: tensor.Local},
			tensor.Spec{Name: "frozen", Shape: []int{4}, Sharing: tensor.Frozen},
		)
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(tensor.NewParams(layout), Options{SliceLen: 4, Clock: func() time.Duration { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// add adds a change if it is believed, as a trainer does.
	add := func(r *Replica, change tensor.Vector) error {
		err := r.Plausible(change)
		if err == nil {
			r.Add(change)
		} else if !errors.Is(err, ErrDiverged) {
			t.Error(err)
		}
		now := make(tensor.Vector, r.Len())
		if r.Snapshot(now); !tensor.Finite(now) {
			t.Fatalf("%v leaves %v", change, now)
		}
		return err
	}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for name, c := range map[string]struct {
		at    []int
		value float32
		added int // of four times the same
	}{
		"exchanged": {[]int{0}, huge, 0}, "never sent": {[]int{5}, huge, 1}, "many": {all, huge, 0},
		"of both signs": {[]int{5, 6}, -2e38, 1}, "frozen": {[]int{9}, huge, 4}, "a model's": {all, 1e4, 4},
	} {
		r, change := mixed(), make(tensor.Vector, 12)
		for _, i := range c.at {
			change[i] = c.value
		}
		added := 0
		for range 4 {
			if add(r, change) == nil {
				added++
			}
		}
		if added != c.added {
			t.Errorf("%s: %d of four are added, want %d", name, added, c.added)
		}
	}
	r, change, refused := mixed(), slices.Repeat(tensor.Vector{0}, 12), 0
	for change[0] = 1; refused < 200; {
		if add(r, change) != nil {
			refused++
			change[0] /= 2
		} else {
			change[0] = min(3*change[0], huge)
		}
	}
}
