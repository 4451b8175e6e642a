package stats

import (
	"math"
	"math/bits"
	"time"
)

// A Histogram has perOctave buckets for each doubling of time, from the shortest that
// can be told apart up to about 18 minutes.
const (
	perOctave        = 4
	histogramOctaves = 40
	histogramBuckets = perOctave * (histogramOctaves - 1)
)

// Histogram counts durations, for quantiles that are right to within a quarter.
type Histogram struct {
	// Counts are the numbers of durations per bucket: Counts[i] are those below
	// Bound(i) that no earlier bucket holds, so Counts[0] those of no time at all; the
	// last holds all that are longer too.
	Counts [histogramBuckets]uint64
	// Longest is the longest duration, exactly, and Sum that of all.
	Longest, Sum time.Duration
}

// Bound is the upper bound of a bucket: its durations are shorter.
func (Histogram) Bound(bucket int) time.Duration {
	if bucket < perOctave {
		return time.Duration(bucket + 1) // a nanosecond each
	}
	octave, part := bucket/perOctave, bucket%perOctave
	return time.Duration(perOctave+part+1) << (octave - 1)
}

// bucketOf is the bucket of a duration.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < perOctave {
		return int(n)
	}
	octave := bits.Len64(n) - 2 // 1 for 4 to 7 ns
	return min(perOctave*octave+int(n>>(octave-1))-perOctave, histogramBuckets-1)
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.Counts[bucketOf(d)]++
	h.Longest, h.Sum = max(h.Longest, d), h.Sum+d
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
	for i, c := range h.Counts[:len(h.Counts)-1] { // the last has no bound
		if seen += c; seen >= rank {
			if i == 0 {
				return 0
			}
			return min(h.Bound(i), h.Longest)
		}
	}
	return h.Longest
}
