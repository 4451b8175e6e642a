package replica

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

var partials = flag.Int("partials", 20_000, "the partial exchanges after which no slice may have waited for too long")

// partial is a replica of so many slices of one value, with what orders its exchanges.
func partial(t *testing.T, slices int) (*Replica, *order, Terms) {
	t.Helper()
	raw, _ := coding.ByID(coding.Raw)
	return slicesOfOne(t, tensor.Spec{Name: "w", Shape: []int{slices}}), &order{}, Terms{Plan: coding.Uniform(raw), Partial: true}
}

// slicesOfOne is a replica of these ranges, in slices of one value.
func slicesOfOne(t *testing.T, ranges ...tensor.Spec) *Replica {
	t.Helper()
	layout, err := tensor.NewLayout(ranges...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// carry has an exchange carry the first so many slices of its order, and returns them.
func carry(r *Replica, o *order, terms Terms, n int) (carried []int) {
	m := new(moved)
	m.size(r)
	o.set(r, terms)
	for turn := range n {
		at := o.at(turn)
		carried = append(carried, at)
		r.change(&part{slice: at}, m, &difference{values: tensor.Vector{0}}, 1)
	}
	for _, s := range r.lockShared() {
		s.age++
	}
	return carried
}

// TestNoSliceWaitsForLong: whichever slices move, and however few of them the link takes, none
// waits for more than maxAge exchanges.
func TestNoSliceWaitsForLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := 0; round < *partials; {
		n := 1 + rng.IntN(100)
		r, o, terms := partial(t, n)
		lively := 1 + rng.IntN(n) // slices that move, some of them much
		for range 20 * maxAge {
			round++
			terms.Exchange++
			for range rng.IntN(4) {
				r.slices[rng.IntN(lively)].in(r.values)[0] += float32(rng.ExpFloat64() * 1e3)
			}
			n := least(n)
			if rng.IntN(4) == 0 {
				n += rng.IntN(1 + len(r.shared) - n)
			}
			carry(r, o, terms, n)
			for i := range r.slices {
				if age := r.slices[i].age; age > maxAge {
					t.Fatalf("slice %d of %d has waited for %d exchanges", i, len(r.slices), age)
				}
			}
		}
	}
}

// TestWhatMovesGoesFirst: of slices that have waited alike, those that moved most.
func TestWhatMovesGoesFirst(t *testing.T) {
	r, o, terms := partial(t, 8)
	carry(r, o, terms, 8)
	for i := range r.slices {
		r.slices[i].in(r.values)[0] += float32(i)
	}
	if got, want := carry(r, o, terms, 3), []int{7, 6, 5}; !slices.Equal(got, want) {
		t.Errorf("slices %v were carried, want %v", got, want)
	}
	if got, want := carry(r, o, terms, 2), []int{4, 3}; !slices.Equal(got, want) {
		t.Errorf("then slices %v were carried, want %v", got, want)
	}
}

// TestPrioritiesCountInPartialExchanges: of slices that have waited and moved alike, those of the joint layer with the higher priority.
func TestPrioritiesCountInPartialExchanges(t *testing.T) {
	for _, first := range []int{0, 1} { // the joint layer with the higher priority
		r := slicesOfOne(t, tensor.Spec{Name: "w", Shape: []int{3, 1}}, tensor.Spec{Name: "b", Shape: []int{3}, Kind: tensor.Bias})
		raw, _ := coding.ByID(coding.Raw)
		o, plan := &order{}, coding.Plan{{Codec: raw, Exact: raw, Proportion: 100}, {Codec: raw, Exact: raw, Proportion: 100}}
		plan[first].Priority = 1
		terms := Terms{Plan: plan, Partial: true}
		carry(r, o, terms, 6)
		for i := range r.slices {
			r.slices[i].in(r.values)[0]++
		}
		for _, at := range carry(r, o, terms, 3) {
			if got := r.slices[r.shared[at]].layer; got != first {
				t.Errorf("a slice of joint layer %d goes first, want those of %d", got, first)
			}
		}
	}
}

// TestSlicesTakeTurns: slices that do not move are carried equally often.
func TestSlicesTakeTurns(t *testing.T) {
	r, o, terms := partial(t, 12)
	times := make([]int, 12)
	for terms.Exchange = range 200 {
		for _, at := range carry(r, o, terms, 3) {
			times[at]++
		}
	}
	if least, most := slices.Min(times), slices.Max(times); most-least > 2 {
		t.Errorf("the slices were carried between %d and %d times in 200 exchanges of a quarter of them, want 50", least, most)
	}
}
