package session_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/session"
)

// TestTwoSessionsConserveTheSum: two peers exchange again and again over streams that
// deliver in any order among lanes and are cut anywhere, with frames forged now and then.
// Every conversation ends, and once all doubts are settled the sum of the models is what it
// was, and nothing was lost.
func TestTwoSessionsConserveTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := setting{
			codec:  rapid.SampledFrom([]string{"raw", "bf16", "int8", "lattice6+4", "lattice4+1"}).Draw(t, "codec"),
			values: rapid.IntRange(1, 40).Draw(t, "values"), slice: rapid.IntRange(1, 9).Draw(t, "slice"),
			lanes: rapid.IntRange(1, 3).Draw(t, "lanes"), window: rapid.IntRange(1, 4).Draw(t, "window"),
			sealed: [2]bool{rapid.Bool().Draw(t, "A sealed"), rapid.Bool().Draw(t, "P sealed")},
		}
		x := newPair(t, set)
		x.quiet = true
		x.pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "next") }
		times := rapid.SampledFrom([]float64{0, 0, 1, 4})
		x.across, x.answer.Across, x.answer.View = times.Draw(t, "across"), times.Draw(t, "as P sees it"), rapid.Uint64Range(1, 2).Draw(t, "view")
		before := x.sum()
		for id := range rapid.IntRange(1, 4).Draw(t, "exchanges") {
			x.now += 2 * time.Hour // whoever was kept away is not any more
			x.change = nil
			if rapid.IntRange(0, 3).Draw(t, "lies") == 0 {
				x.change = forged(rapid.SampledFrom([]string{"CODE", "DIFF", "RANGES", "ACCEPT", "SETTLED"}).Draw(t, "about"))
			}
			x.propose(averaging.ExchangeID(id + 1))
			x.run(rapid.IntRange(-1, 40).Draw(t, "frames"))
			x.cut(errCut)
			x.run(-1)
			for i, s := range x.ways {
				for side := range 2 {
					if !s.done[side] {
						t.Fatalf("%s has not ended stream %d", name(side), i)
					}
				}
			}
		}
		x.change = nil
		for len(x.p.ledger.Partners()) > 0 {
			x.inquiry = &session.Inquiry{}
			x.inquiry.Begin(&x.p.local, x.now, "A")
			x.begin(x.inquiry, x.p, x.a)
			x.run(-1)
		}
		if lost := x.p.ledger.Lost(); lost.Slices > 0 {
			t.Fatalf("%d slices are lost", lost.Slices)
		}
		for i, v := range x.sum() {
			if math.Abs(v-before[i]) > 1e-5 {
				t.Fatalf("the sum of value %d was %g and is %g", i, before[i], v)
			}
		}
	})
}

// sum is that of the two models, value by value.
func (x *pair) sum() (sum []float64) {
	x.a.local.Replica.Snapshot(x.a.params)
	x.p.local.Replica.Snapshot(x.p.params)
	for i := range x.a.params {
		sum = append(sum, float64(x.a.params[i])+float64(x.p.params[i]))
	}
	return sum
}
