package rows

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// chiSquared is the chi-squared statistic of counts, and its bound for equal chances at a significance level of 1/10,000 (by
// Wilson and Hilferty, 1931).
func chiSquared(counts []int) (is, most float64) {
	sum, k := 0.0, float64(len(counts)-1)
	for _, n := range counts {
		sum += float64(n)
	}
	each := sum / float64(len(counts))
	for _, n := range counts {
		is += (float64(n) - each) * (float64(n) - each) / each
	}
	const z = 3.719
	return is, k * math.Pow(1-2/(9*k)+z*math.Sqrt(2/(9*k)), 3)
}

// TestTwoHopsMixAll: four holders have different classes, and different numbers of rows. A trainer asks one of them. With two
// hops its batches are uniform over all rows, and with one hop they are not.
func TestTwoHopsMixAll(t *testing.T) {
	const rows = 400
	for _, c := range []struct {
		hops, holders int
		uniform       bool
	}{{1, 1, false}, {2, 1, true}, {1, 4, true}, {3, 2, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var holders []*Holder
			for i, of := range []struct{ first, rows int }{{0, 40}, {40, 160}, {200, 80}, {280, 120}} {
				holders = append(holders, w.hold(w.member(string(rune('a'+i))), numbered{of.first, of.rows}, HoldConfig{Seed: uint64(i), Check: check}))
			}
			b := w.from(w.member("trainer"), FromConfig{Batch: 20, Hops: c.hops, Seed: 5})
			b.pool.few = c.holders
			w.met()
			counts := make([]int, rows)
			for range 200 {
				for _, row := range numbers(t, w.next(b)) {
					counts[row]++
				}
			}
			if is, most := chiSquared(counts); c.uniform == (is > most) {
				t.Errorf("by %d hops from %d holders: χ² is %.0f, and %.0f at most where all rows have the same chance", c.hops, c.holders, is, most)
			} else {
				t.Logf("by %d hops from %d holders: χ² is %.0f (%.0f)", c.hops, c.holders, is, most)
			}
			b.Done()
			b.Close()
			time.Sleep(time.Second) // until all holders have been told
			var sum Counts
			for _, h := range holders {
				h.Close()
				sum.Add(Counts{}, h.Counts())
			}
			if sum.Trained != 4000 || sum.HandedOut != sum.Trained || sum.Outstanding() != 0 {
				t.Errorf("by %d hops: %+v", c.hops, sum)
			}
		})
	}
}

// TestSquaresCanFail: the test of uniformity passes for random numbers, and fails if a tenth of them has a chance that is one
// third higher.
func TestSquaresCanFail(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	fair, unfair := make([]int, 400), make([]int, 400)
	for range 40_000 {
		fair[chance.IntN(400)]++
		unfair[chance.IntN(400)]++
	}
	for i := range 40 {
		unfair[i] += unfair[i] / 3
	}
	if is, most := chiSquared(fair); is > most {
		t.Errorf("fair: %.0f, at most %.0f", is, most)
	}
	if is, most := chiSquared(unfair); is <= most {
		t.Errorf("unfair: %.0f, at most %.0f", is, most)
	}
}

// TestADrawIsReproducible: the same seeds give the same batches, in the same order.
func TestADrawIsReproducible(t *testing.T) {
	var all [2][]int
	for i := range all {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.hold(w.member("a"), numbered{rows: 50}, HoldConfig{Seed: 1})
			w.hold(w.member("b"), numbered{first: 50, rows: 150}, HoldConfig{Seed: 2})
			b := w.from(w.member("trainer"), FromConfig{Seed: 3})
			w.met()
			for range 20 {
				got := numbers(t, w.next(b))
				slices.Sort(got)
				all[i] = append(all[i], got...)
			}
		})
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("%v\n%v", all[0], all[1])
	}
}
