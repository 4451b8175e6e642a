package replica_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestConsistentCopyHoldsWholeSteps takes copies while a trainer adds one to every
// value of a model of equal values: all of a copy are of the same step.
func TestConsistentCopyHoldsWholeSteps(t *testing.T) {
	const length, copies = 5000, 200
	s := oneSlice(t, length, 0, replica.Options{SliceLen: 64})
	stop := make(chan struct{})
	var trainer sync.WaitGroup
	trainer.Go(func() {
		one := make(tensor.Vector, length)
		for i := range one {
			one[i] = 1
		}
		for {
			select {
			case <-stop:
				return
			default:
				s.Add(one)
			}
		}
	})
	x, last := make(tensor.Vector, length), float32(0)
	for n := 0; n < copies || last == 0; n++ {
		s.Consistent(x)
		if lo, hi := slices.Min(x), slices.Max(x); lo != hi || lo < last {
			t.Errorf("a copy with steps %g to %g, after one with %g", lo, hi, last)
			break
		}
		last = x[0]
	}
	close(stop)
	trainer.Wait()
}

// TestConsistentCopyHoldsWholeSlices takes copies between any two frames of an
// exchange: each slice is as it was before the exchange or after.
func TestConsistentCopyHoldsWholeSlices(t *testing.T) {
	a, p := randomSides(t, 3)
	before := [2]tensor.Vector{contents(a.Replica), contents(p.Replica)}
	var copies [2][]tensor.Vector
	look := func() {
		for i, s := range []*side{a, p} {
			x := make(tensor.Vector, s.Len())
			s.Consistent(x)
			copies[i] = append(copies[i], x)
		}
	}
	x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2, Exchange: number})
	for l := x.lanes[0]; !p.responder.Done(); {
		for _, action := range []func() bool{l.send, l.answer, l.apply} {
			action()
			look()
		}
	}
	after := [2]tensor.Vector{contents(a.Replica), contents(p.Replica)}
	for i, side := range copies {
		for n, x := range side {
			for _, r := range sharedRanges {
				part := x[r[0]:r[1]]
				if !sameBits(part, before[i][r[0]:r[1]]) && !sameBits(part, after[i][r[0]:r[1]]) {
					t.Fatalf("copy %d of side %d: a slice that is neither old nor new", n, i)
				}
			}
		}
	}
}

// TestWhatIsNotSharedStays: steps change local values and never frozen ones.
func TestWhatIsNotSharedStays(t *testing.T) {
	a, _ := randomSides(t, 3)
	before := contents(a.Replica)
	a.Add(smallStepUp(a.Len()))
	for i, v := range contents(a.Replica) {
		if frozen := i >= frozenFrom && i < localFrom; frozen != (v == before[i]) {
			t.Errorf("value %d: frozen is %v, and it went from %g to %g", i, frozen, before[i], v)
		}
	}
}

// TestSharedValuesTravelCompact: what one peer compacts, another restores, and nothing
// else of it changes.
func TestSharedValuesTravelCompact(t *testing.T) {
	a, p := randomSides(t, 3)
	wasA, wasP := contents(a.Replica), contents(p.Replica)
	shared := a.CompactShared(contents(a.Replica))
	if len(shared) != a.SharedLen() || len(shared) != sharedSlices*sliceLen-16 || a.SharedSlices() != sharedSlices {
		t.Fatalf("%d shared values in %d slices", len(shared), a.SharedSlices())
	}
	bad := append(tensor.Vector(nil), shared...)
	bad[20] = float32(math.NaN())
	for name, values := range map[string]tensor.Vector{"NaN": bad, "too few": shared[1:], "none": nil} {
		if err := p.RestoreShared(values); err == nil || !sameBits(contents(p.Replica), wasP) {
			t.Errorf("%s: error %v, or the parameters have changed", name, err)
		}
	}
	if err := p.RestoreShared(shared); err != nil {
		t.Fatal(err)
	}
	for i, v := range contents(p.Replica) {
		want := wasA[i]
		if i >= frozenFrom && i < sharedFrom {
			want = wasP[i]
		}
		if v != want {
			t.Errorf("value %d is %g, want %g", i, v, want)
		}
	}
}

// TestNewRefuses what no replica can be made of.
func TestNewRefuses(t *testing.T) {
	notFinite := smallModel(t, nil, func(i int) float32 { return float32(math.Inf(-1)) })
	fine := smallModel(t, nil, func(int) float32 { return 0 })
	for name, c := range map[string]struct {
		params  *tensor.Params
		options replica.Options
	}{
		"no parameters":     {nil, replica.Options{}},
		"infinite values":   {notFinite, replica.Options{}},
		"slices too long":   {fine, replica.Options{SliceLen: replica.MaxSliceLen + 1}},
		"slices of nothing": {fine, replica.Options{SliceLen: -1}},
	} {
		if _, err := replica.New(c.params, c.options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNothingShared: an exchange of a model that shares nothing is over at once.
func TestNothingShared(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "own", Shape: []int{9}, Sharing: tensor.Local})
	if err != nil {
		t.Fatal(err)
	}
	a := newSide(t, tensor.NewParams(layout), replica.Options{})
	p := newSide(t, tensor.NewParams(layout), replica.Options{})
	for _, partial := range []bool{false, true} {
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2, Lanes: 3, Partial: partial}).finish()
	}
}
