package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestBucketsAreInOrder: every duration is below the bound of its bucket and not
// below that of the one before.
func TestBucketsAreInOrder(t *testing.T) {
	var h Histogram
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		d := time.Duration(i)
		if i > 5000 {
			d = time.Duration(random.Uint64() >> (24 + random.IntN(40)))
		}
		bucket := bucketOf(d)
		if bucket == histogramBuckets-1 {
			continue
		}
		if d >= h.Bound(bucket) || bucket > 0 && d < h.Bound(bucket-1) {
			t.Fatalf("%d ns is in bucket %d, below %d", d, bucket, h.Bound(bucket))
		}
	}
	if bucketOf(-1) != 0 || bucketOf(1<<62) != histogramBuckets-1 {
		t.Error("durations beyond the buckets are in none of the ends")
	}
}

// TestQuantiles compares with the sorted durations.
func TestQuantiles(t *testing.T) {
	var h Histogram
	random := rand.New(rand.NewPCG(3, 4))
	all := make([]time.Duration, 10_000)
	for i := range all {
		all[i] = time.Duration(random.ExpFloat64() * 1e6)
		h.Add(all[i])
	}
	slices.Sort(all)
	if h.Count() != uint64(len(all)) || h.Longest != all[len(all)-1] {
		t.Errorf("%d durations, the longest %s", h.Count(), h.Longest)
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		exact := all[max(int(q*float64(len(all)))-1, 0)]
		if got := h.Quantile(q); got < exact || float64(got) > 1.26*float64(exact)+1 {
			t.Errorf("quantile %g is %s, exactly %s", q, got, exact)
		}
	}
	if h.Add(time.Hour); h.Quantile(1) != time.Hour { // beyond all bounds
		t.Errorf("the longest is %s", h.Quantile(1))
	}
	if got := (Histogram{}).Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %s", got)
	}
}
