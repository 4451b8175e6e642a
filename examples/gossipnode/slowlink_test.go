package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestSlowLinkTuned races on the slow link of TestSlowLink with each strategy at the best
// of some rates, by the geometric mean over seeds, and prints the table of
// docs/RESULTS.md.
func TestSlowLinkTuned(t *testing.T) {
	if !*tables {
		t.Skip("trains some 50 times; with -tables")
	}
	rates, seeds := []float64{0.01, 0.02, 0.05, 0.1, 0.2}, []int{1, 2, 3}
	best := map[string][]float64{} // steps by strategy, of its best rate
	var table strings.Builder
	for _, c := range []crawler{crawlRing, crawlStalls, crawlRaw, crawlLattice} {
		for _, rate := range rates {
			t.Run(fmt.Sprintf("%s/%v", c.name, rate), func(t *testing.T) {
				took := c.all(t, rate, seeds)
				fmt.Fprintf(&table, "%24s  %5v  %6.0f\n", c.name, rate, took)
				if old := best[c.name]; old == nil || middle(took) < middle(old) {
					best[c.name] = took
				}
			})
		}
	}
	t.Logf("steps of virtual time by strategy, rate and seed, -100 for never:\n%s", &table)
	if len(best) < 4 {
		return // some were asked for
	}
	table.Reset()
	for _, own := range []crawler{crawlLattice, crawlRaw} {
		for _, other := range []crawler{crawlStalls, crawlRing} {
			fmt.Fprintf(&table, "%s takes %.1f times as long as %s, each at its best rate\n",
				other.name, middle(best[other.name])/middle(best[own.name]), own.name)
		}
	}
	t.Log("\n" + table.String())
	own, stalled, ring := middle(best[crawlLattice.name]), middle(best[crawlStalls.name]), middle(best[crawlRing.name])
	if math.IsInf(own, 0) || ring < 5*own || stalled < 10*own {
		t.Errorf("each at its best rate, allreduce takes %.1f times as long, want 5; adpsgd that stalls %.1f times, want 10", ring/own, stalled/own)
	}
}

// all are the steps for some seeds, up to the first for which the rate is too high.
func (c crawler) all(t *testing.T, rate float64, seeds []int) (took []float64) {
	t.Helper()
	for _, seed := range seeds {
		took = append(took, c.steps(t, rate, seed))
		if took[len(took)-1] < 0 {
			break
		}
	}
	return took
}

// middle is the geometric mean; infinite if one of them was never seen.
func middle(steps []float64) float64 {
	if slices.Min(steps) < 0 {
		return math.Inf(1)
	}
	sum := 0.0
	for _, s := range steps {
		sum += math.Log(s)
	}
	return math.Exp(sum / float64(len(steps)))
}
