package simulate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// tuning is what TestSlowLinkTuned tries for a size of batch.
type tuning struct {
	batch int
	rates []float64
	gain  float64 // over allreduce that the best rates are to show
}

var tunings = []tuning{
	{16, []float64{0.01, 0.02, 0.05, 0.1, 0.2}, 5},
	{64, []float64{0.02, 0.05, 0.1, 0.2, 0.3}, 10},
	{128, []float64{0.05, 0.07, 0.1, 0.15, 0.2, 0.3}, 15},
	{256, []float64{0.05, 0.1, 0.15, 0.2, 0.3}, 20},
}

// TestSlowLinkTuned races on the slow link of TestSlowLink with each strategy at the best
// of some rates, by the geometric mean over seeds, and prints the tables of
// docs/MEASUREMENTS.md.
func TestSlowLinkTuned(t *testing.T) {
	if !*tables {
		t.Skip("trains some 300 times; with -tables")
	}
	for _, tune := range tunings {
		t.Run(fmt.Sprint(tune.batch), tune.race)
	}
}

func (u tuning) race(t *testing.T) {
	crawlers := []crawler{crawlLattice, crawlRaw, crawlStalls, crawlRing, crawlRing8}
	best := map[string]float64{} // steps by strategy, of its best rate
	var table strings.Builder
	for _, rate := range u.rates {
		fmt.Fprintf(&table, "| %v |", rate)
		for _, c := range crawlers {
			took := c.all(t, crawl{batch: u.batch, rate: rate}, []int{1, 2, 3})
			fmt.Fprintf(&table, " %.0f |", took)
			if old, ok := best[c.name]; !ok || middle(took) < old {
				best[c.name] = middle(took)
			}
		}
		table.WriteByte('\n')
	}
	own := best[crawlLattice.name]
	for _, c := range crawlers {
		fmt.Fprintf(&table, "%s at its best rate: %.0f steps, %.1f times as long as lattice6+4\n", c.name, best[c.name], best[c.name]/own)
	}
	t.Logf("steps of virtual time with batches of %d, -100 for never:\n%s", u.batch, &table)
	if ring := best[crawlRing.name]; math.IsInf(own, 0) || ring < u.gain*own || best[crawlStalls.name] < 10*own {
		t.Errorf("with batches of %d allreduce takes %.1f times as long, want %v; adpsgd that stalls %.1f times, want 10",
			u.batch, ring/own, u.gain, best[crawlStalls.name]/own)
	}
}

// all are the steps for some seeds, up to the first for which the rate is too high.
func (c crawler) all(t *testing.T, with crawl, seeds []int) (took []float64) {
	t.Helper()
	for _, seed := range seeds {
		with.seed = seed
		took = append(took, c.steps(t, with))
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
