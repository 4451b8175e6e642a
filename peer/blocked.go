package peer

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// histogramBuckets is the number of buckets of a Histogram: the last begins at
// about nine minutes.
const histogramBuckets = 40

// Histogram counts durations in buckets whose bounds double: Counts[0] are those
// of no time at all, and Counts[i] those from 2^(i-1) up to 2^i nanoseconds; the
// last has no upper bound.
type Histogram struct {
	Counts [histogramBuckets]uint64
	// Longest is the longest duration, exactly.
	Longest time.Duration
}

// Count is the number of durations.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns a duration that the share q of all, 0 to 1, does not exceed:
// the upper bound of the bucket in which it lies, and never more than the longest.
// It is 0 if nothing was counted.
func (h Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.Count())))
	var seen uint64
	for i, c := range h.Counts {
		if seen += c; seen >= rank {
			if i == 0 {
				return 0
			}
			return min(time.Duration(1)<<i, h.Longest)
		}
	}
	return h.Longest
}

// blocked is a histogram in the making. It is safe for concurrent use.
type blocked struct {
	counts  [histogramBuckets]atomic.Uint64
	longest atomic.Int64
}

func (b *blocked) add(d time.Duration) {
	bucket := min(bits.Len64(uint64(max(d, 0))), histogramBuckets-1)
	b.counts[bucket].Add(1)
	for {
		longest := b.longest.Load()
		if int64(d) <= longest || b.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

func (b *blocked) report() (h Histogram) {
	for i := range b.counts {
		h.Counts[i] = b.counts[i].Load()
	}
	h.Longest = time.Duration(b.longest.Load())
	return h
}
