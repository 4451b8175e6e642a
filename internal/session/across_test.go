package session_test

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestExchangesAcrossWeighMoreIfViewsAgree: both sides move by as much as both say that the exchange weighs, if they say it of
// the same view, and else by as much as always, though the one that proposes cannot know.
func TestExchangesAcrossWeighMoreIfViewsAgree(t *testing.T) {
	for _, c := range []struct {
		a, p float64
		view uint64
		want float64 // the share of the distance by which each moves
	}{{0, 0, 1, 0.5}, {4, 4, 1, 2}, {4, 4, 2, 0.5}, {4, 0, 1, 0.5}, {0, 4, 2, 0.5}} {
		x := newPair(t, setting{codec: "raw", values: 20, slice: 9, lanes: 1, window: 2})
		x.quiet = true
		x.across, x.answer.Across, x.answer.View = c.a, c.p, c.view
		x.sum() // takes both models down
		before := [2]tensor.Vector{slices.Clone(x.a.params), slices.Clone(x.p.params)}
		x.propose(1)
		x.run(-1)
		x.sum()
		if r := x.results["A"]; r.Outcome != session.Finished {
			t.Errorf("%+v: %+v", c, r)
		}
		for i := range before[0] {
			gap := float64(before[1][i] - before[0][i])
			if moved := float64(x.a.params[i] - before[0][i]); math.Abs(moved/gap-c.want) > 1e-3 {
				t.Fatalf("%+v: value %d moves by %g of the distance", c, i, moved/gap)
			}
		}
	}
}
