package handout

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// enough is the part of the highest possible rate that Choose must reach.
const enough = 0.9

// Choose picks the takers of a round robin, the N fastest, and returns their indexes in ascending order. All get the
// same share, so the slowest decides how long an epoch lasts: together they are as fast as N times the slowest. N is
// the largest, at most volume, at which this rate is nine tenths of the best at any N. Speeds are positive; there is
// at least one, and volume is at least 1.
func Choose(speeds []float64, volume int) (chosen []int) {
	order := make([]int, len(speeds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speeds[b], speeds[a]) })
	order = order[:min(len(order), volume)]
	best := 0.0
	for i, at := range order {
		best = max(best, float64(i+1)*speeds[at])
	}
	n := len(order)
	for n > 1 && float64(n)*speeds[order[n-1]] < enough*best {
		n--
	}
	chosen = order[:n]
	slices.Sort(chosen)
	return chosen
}

// Shares divides rows in proportion to weights, which are positive. The shares add up to rows: what rounding takes from one share
// is given to a later one.
func Shares(rows int, weights []float64) []int {
	shares, sum, sums := make([]int, len(weights)), 0.0, make([]float64, len(weights))
	for i, w := range weights {
		sum += w
		sums[i] = sum
	}
	given := 0
	for i := range shares {
		shares[i] = int(math.Round(float64(rows)*(sums[i]/sum))) - given
		given += shares[i]
	}
	return shares
}

// Draw draws the source of each row that the parts need. The chance of a source is in proportion to its rows, so each row has the
// same chance. It returns, by source, the rows of each part. At least one source has rows, and their sum does not overflow.
func Draw(chance *rand.Rand, need []uint32, rows []uint64) [][]uint32 {
	sum, by := uint64(0), make([][]uint32, len(rows))
	for i, n := range rows {
		sum += n
		by[i] = make([]uint32, len(need))
	}
	for part, n := range need {
		for range n {
			at, i := chance.Uint64N(sum), 0
			for at >= rows[i] {
				at -= rows[i]
				i++
			}
			by[i][part]++
		}
	}
	return by
}

// fade is the weight of a run in a speed, relative to the next run.
const fade = 0.9

// speed measures a taker over about its last ten runs.
type speed struct {
	rows, seconds float64
	last          time.Duration // when the taker last reported on a run
	busy          bool          // whether it had more runs to train on then
}

// add counts a run. More tells whether the taker has further runs to train on. Time in which it had none does not count.
func (s *speed) add(rows int, more bool, now time.Duration) {
	if s.busy {
		s.rows, s.seconds = fade*s.rows+float64(rows), fade*s.seconds+(now-s.last).Seconds()
	}
	s.last, s.busy = now, more
}

// value is the speed in rows per second, 0 if it is not known.
func (s *speed) value() float64 {
	if s.seconds <= 0 {
		return 0
	}
	return s.rows / s.seconds
}
