package handout

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// enough is the part of the highest possible rate that more takers may cost: see Choose.
const enough = 0.9

// Choose picks who takes part in a round robin, by volume and speed: all get the same share, so that an epoch
// lasts as long as the slowest of them needs, and the N fastest together are as fast as N times the slowest
// of them. N is the largest, at most volume, for which that is nine tenths of what the best N gives. Speeds
// are positive, and volume and their number at least 1. The result is ascending.
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

// Shares divides rows in proportion to weights, which are positive, without a remainder: what rounding leaves of a share comes to
// one behind it.
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

// Draw draws the source of each row that parts need, with a chance in proportion to the rows that sources have, so that each row
// of all has the same: how many rows of each part, by source. Some source has rows, and their sum does not overflow.
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

// fade is how much an earlier run counts beside the one after it, in a speed.
const fade = 0.9

// speed is that of a taker, over about its last ten runs.
type speed struct {
	rows, seconds float64
	last          time.Duration // when it told of a run, while it had more
	busy          bool          // it had
}

// add counts a run, at the end of which the taker had more to do or not. Time in which it had none does not count.
func (s *speed) add(rows int, more bool, now time.Duration) {
	if s.busy {
		s.rows, s.seconds = fade*s.rows+float64(rows), fade*s.seconds+(now-s.last).Seconds()
	}
	s.last, s.busy = now, more
}

// value is in rows a second, 0 if not known.
func (s *speed) value() float64 {
	if s.seconds <= 0 {
		return 0
	}
	return s.rows / s.seconds
}
