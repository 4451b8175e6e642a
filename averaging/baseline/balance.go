package baseline

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// MaxBatch bounds the samples that a peer is given for a step.
	MaxBatch = 1 << 24
	// smoothing is the weight of a new measurement of speed.
	smoothing = 0.2
)

// Shares divides total samples among peers in proportion to their speeds, in samples a
// second (LB-BSP): each step then takes the same time at all peers, total over the sum of
// the speeds. The shares add up to total exactly, by largest remainders, the earlier peer
// first if they are equal. Each share is at least 1; a total that is too small for that is
// raised to one each. A speed that is not finite and above 0 counts as unknown, and is
// replaced by the mean of the others.
//
// Gradients then count b_i/B each, because they are summed with their numbers of samples as
// weights.
func Shares(total int, speeds []float64) []int {
	n := len(speeds)
	if n == 0 {
		return nil
	}
	total = max(total, n)
	speeds = known(speeds)
	var sum float64
	for _, v := range speeds {
		sum += v
	}
	shares := make([]int, n)
	order := make([]int, n)
	rest := make([]float64, n)
	left := total - n
	for i, v := range speeds {
		// Each gets one first; only the rest is divided.
		exact := max(float64(total)*v/sum-1, 0)
		shares[i], rest[i], order[i] = 1+int(exact), exact-math.Floor(exact), i
		left -= int(exact)
	}
	for ; left < 0; left++ { // shares below one were raised at the others' cost
		shares[mostAbove(shares, speeds)]--
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i, left = (i+1)%n, left-1 {
		shares[order[i]]++
	}
	return shares
}

// division divides the flock's batch, if the coordinator does so: whole, or each per peer.
type division struct {
	whole, each int

	speeds map[topology.PeerID]float64 // as reported
}

func (d *division) shares(workers []topology.PeerID) []int {
	if !d.divides() {
		return nil
	}
	speeds := make([]float64, len(workers))
	for i, id := range workers {
		speeds[i] = d.speeds[id]
	}
	return Shares(cmp.Or(d.whole, d.each*len(workers)), speeds)
}

func (d *division) divides() bool { return d.whole > 0 || d.each > 0 }

// inTurn is the share of peer i of n in a round: shares differ by one at most, and which peers have the larger ones
// changes from round to round. In each round all add up to total, or to n if that is more.
func inTurn(total, i, n int, round uint64) int {
	total = max(total, n)
	return (total + n - 1 - int((uint64(i)+round)%uint64(n))) / n
}

// mostAbove is the peer whose share takes longest, among those with more than one sample.
func mostAbove(shares []int, speeds []float64) int {
	most := -1
	for i, share := range shares {
		if share > 1 && (most < 0 || float64(share)*speeds[most] > float64(shares[most])*speeds[i]) {
			most = i
		}
	}
	return most
}

// known replaces invalid speeds, and scales all so that sums stay finite.
func known(speeds []float64) []float64 {
	makesSense := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	var largest, sum, n float64
	for _, v := range speeds {
		if makesSense(v) {
			largest = max(largest, v)
		}
	}
	scaled, mean := make([]float64, len(speeds)), 1.0
	for i, v := range speeds {
		if makesSense(v) {
			scaled[i] = max(v/largest, 1e-9)
			sum, n = sum+scaled[i], n+1
			mean = sum / n
		}
	}
	for i, v := range scaled {
		if v == 0 {
			scaled[i] = mean
		}
	}
	return scaled
}

// speedometer measures how fast the trainer computes, waiting not counted.
type speedometer struct {
	since   time.Duration
	running bool
	value   float64 // samples a second, smoothed; 0 before anything is measured
}

func (s *speedometer) began(now time.Duration) { s.since, s.running = now, true }

func (s *speedometer) done(now time.Duration, samples int) {
	if s.running && samples > 0 && now > s.since {
		v := float64(samples) / (now - s.since).Seconds()
		s.value = cmp.Or(s.value, v)
		// The time per sample is smoothed, not the speed: a long pause then counts in
		// proportion to its length.
		s.value = 1 / ((1-smoothing)/s.value + smoothing/v)
	}
	s.running = false
}
