package stats

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// durations are drawn of every size, with many that are alike.
func durations() *rapid.Generator[[]time.Duration] {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64().Draw(t, "ns") >> rapid.IntRange(22, 63).Draw(t, "shift"))
	})
	return rapid.SliceOfN(one, 0, 50)
}

// TestAHistogramOfAnything: whatever is counted, in whatever order, is in the sums, and a
// quantile is a duration that the share does not exceed, too large by a quarter at most.
func TestAHistogramOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := durations().Draw(t, "durations")
		var h, other Histogram
		var sum time.Duration
		for i, d := range all {
			h.Add(d)
			other.Add(all[len(all)-1-i])
			sum += d
		}
		if h != other {
			t.Fatalf("%v are counted otherwise in another order", all)
		}
		slices.Sort(all)
		if h.Count() != uint64(len(all)) || h.Sum != sum || len(all) > 0 && h.Longest != max(all[len(all)-1], 0) {
			t.Fatalf("%d durations of %d, the longest %v, %v in all", h.Count(), len(all), h.Longest, h.Sum)
		}
		last := time.Duration(0)
		for percent := -10; percent <= 110; percent += 5 {
			q := h.Quantile(float64(percent) / 100)
			if q < last || q > h.Longest {
				t.Fatalf("quantile %d%% is %v, after %v, of at most %v", percent, q, last, h.Longest)
			}
			last = q
			if rank := (len(all)*min(max(percent, 0), 100) + 99) / 100; rank > 0 {
				exact := max(all[rank-1], 0)
				if most := exact + exact/4 + 1; bucketOf(exact) < histogramBuckets-1 && (q < exact || q > most) {
					t.Fatalf("quantile %d%% is %v, exactly %v", percent, q, exact)
				}
			}
		}
	})
}

// TestPowersOfTwoAreBounds of buckets, up to the last, so that coarser histograms can be made
// of these exactly; every bound is above the one before, by a quarter of it or a nanosecond.
func TestPowersOfTwoAreBounds(t *testing.T) {
	var h Histogram
	bounds := map[time.Duration]bool{}
	for i := range len(h.Counts) {
		bounds[h.Bound(i)] = true
		if i == 0 {
			continue
		}
		if step := h.Bound(i) - h.Bound(i-1); step < 1 || step > max(h.Bound(i-1)/4, 1) {
			t.Errorf("bucket %d reaches from %d to %d", i, h.Bound(i-1), h.Bound(i))
		}
	}
	for power := time.Duration(1); power <= h.Bound(len(h.Counts)-1); power *= 2 {
		if !bounds[power] {
			t.Errorf("%v is no bound", power)
		}
	}
}

// TestAgesAreCountedOnce, in the first bucket that reaches so far.
func TestAgesAreCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, want Ages
		for _, steps := range rapid.SliceOfN(rapid.Uint64Range(0, 1<<30), 0, 50).Draw(t, "steps") {
			a.Add(steps)
			bucket := 0
			for bucket < len(want.Counts)-1 && steps > want.Bound(bucket) {
				bucket++
			}
			want.Counts[bucket]++
			want.Sum += steps
		}
		if a != want {
			t.Fatalf("%v, want %v", a, want)
		}
	})
	if last := (Ages{}).Bound(maxAges - 2); bits.Len64(last) != maxAges-2 {
		t.Errorf("all beyond %d steps are in the last bucket", last)
	}
}

// TestExchangesOfBothSidesAreCompleted, and no others.
func TestExchangesOfBothSidesAreCompleted(t *testing.T) {
	if n := (Exchanges{Initiated: 2, Served: 3, Refused: 4, Failed: 5}).Completed(); n != 5 {
		t.Errorf("%d are completed", n)
	}
}
