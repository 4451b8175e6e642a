package handout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"
)

// TestWeights: takers are handed out shares by their weights, beside equal speeds and unequal ones, whatever the policy was; one that is
// weighed before it comes, too. Without weights all is as before.
func TestWeights(t *testing.T) {
	for policy, want := range map[Policy]float64{Random: 4, RoundRobin: 2, Speed: 4} { // b is half as fast, and weighs half
		l, _ := New(Config{Rows: 4000, Policy: policy, Seed: 3})
		if !l.Weigh("b", 0.5, 0) {
			t.Fatal("there is room for a weight")
		}
		steps := map[string]time.Duration{"a": 10 * time.Millisecond, "b": 20 * time.Millisecond}
		got, now := map[string]int{}, time.Duration(0)
		epoch := func() {
			given := map[string]int{}
			now = slices.Max(slices.Collect(maps.Values(courseOf(l, steps, now, given))))
			got = given
		}
		for range 4 { // until speeds are measured
			epoch()
		}
		if by := float64(got["a"]) / float64(got["b"]); math.Abs(by-want) > 0.15*want || got["a"]+got["b"] != 4000 {
			t.Errorf("policy %d: %v, a share of %.2f to 1, want %.0f", policy, got, by, want)
		}
		l.Weigh("b", 1, now)
		for range 4 {
			epoch()
		}
		free, _ := New(Config{Rows: 4000, Policy: policy, Seed: 3})
		now = 0
		weighed := got
		for l = free; l.epochs < 8; epoch() {
		}
		if math.Abs(float64(weighed["b"]-got["b"])) > 200 {
			t.Errorf("policy %d: with the weight 1 again %v, and %v where there never was one", policy, weighed, got)
		}
	}
	l, _ := New(Config{Rows: 10, Seed: 1})
	for i := range MaxWeights {
		l.Weigh(fmt.Sprint(i), 2, 0)
	}
	if l.Weigh("one more", 2, 0) || !l.Weigh("3", 1, 0) || !l.Weigh("one more", 2, 0) {
		t.Error("the bound of weights")
	}
}

// TestExtremeWeights: however large or small they are, what counts is how they stand to each other.
func TestExtremeWeights(t *testing.T) {
	for _, by := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64} {
		for policy := Random; policy <= Speed; policy++ {
			l, _ := New(Config{Rows: 1000, Policy: policy, Seed: 3})
			l.Weigh("a", by, 0)
			l.Weigh("b", by, 0)
			given := map[string]int{}
			for range 3 {
				clear(given)
				courseOf(l, map[string]time.Duration{"a": time.Millisecond, "b": time.Millisecond}, 0, given)
			}
			if policy != Speed && math.Abs(float64(given["a"]-given["b"])) > 100 || given["a"]+given["b"] != 1000 {
				t.Errorf("weights of %g, policy %d: %v", by, policy, given)
			}
		}
	}
}
