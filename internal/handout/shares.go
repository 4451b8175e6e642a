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
	order := byspeed(speeds)
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

// fastest are the speeds with all but the so many highest set to 0.
func fastest(speeds []float64, most int) []float64 {
	order := byspeed(speeds)
	for _, at := range order[min(most, len(order)):] {
		speeds[at] = 0
	}
	return speeds
}

// byspeed are the indices of speeds, the highest first.
func byspeed(speeds []float64) []int {
	order := make([]int, len(speeds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speeds[b], speeds[a]) })
	return order
}

// Shares divides rows in proportion to weights, which are not negative and not all 0, without a remainder:
// what rounding down leaves goes to the largest fractions, one each.
func Shares(rows int, weights []float64) []int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	shares, order := make([]int, len(weights)), make([]int, len(weights))
	left, fractions := rows, make([]float64, len(weights))
	for i, w := range weights {
		exact := float64(rows) * (w / sum)
		shares[i], order[i] = min(int(math.Floor(exact)), left), i
		fractions[i], left = exact-math.Floor(exact), left-shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(fractions[b], fractions[a]) })
	for i := 0; left > 0; i, left = i+1, left-1 {
		shares[order[i%len(order)]]++
	}
	return shares
}

// Draw divides n draws among sources at random, each draw to a source with a chance in proportion to the rows
// that it has: so each row of all has the same chance. Not all sources have 0 rows, and their sum does not overflow.
func Draw(chance *rand.Rand, n int, rows []uint64) []int {
	sum, counts := uint64(0), make([]int, len(rows))
	for _, r := range rows {
		sum += r
	}
	for range n {
		at, i := chance.Uint64N(sum), 0
		for at >= rows[i] {
			at -= rows[i]
			i++
		}
		counts[i]++
	}
	return counts
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
