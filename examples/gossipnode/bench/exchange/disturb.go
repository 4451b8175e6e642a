package exchange

import (
	"context"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of training during uninterrupted exchanges. With fewer than a hundred steps the 99th percentile would be the
// longest.
const (
	disturbedSteps = 100
	disturbedTime  = time.Second
	maxDisturbed   = 25 * time.Second
)

// disturbance is how long a trainer waited in its steps for slices that exchanges had locked.
type disturbance struct {
	Side           string  `json:"side"`
	Steps          uint64  `json:"steps"`
	Exchanges      uint64  `json:"exchanges"`
	P99Seconds     float64 `json:"p99_seconds"`
	LongestSeconds float64 `json:"longest_seconds"`
}

// train steps for a while and returns how long the trainer waited.
func (b *steppedPeer) train(ctx context.Context) (disturbance, error) {
	before, began := b.peer.Stats(), time.Now()
	for steps := 0; steps < disturbedSteps || time.Since(began) < disturbedTime; steps++ {
		if err := b.step(ctx); err != nil {
			return disturbance{}, err
		}
		if time.Since(began) > maxDisturbed {
			break
		}
	}
	after := b.peer.Stats()
	blocked := sinceThen(after.Exchanges.Blocked, before.Exchanges.Blocked)
	return disturbance{
		Side: after.Role, Steps: blocked.Count(), Exchanges: after.Exchanges.Completed() - before.Exchanges.Completed(),
		P99Seconds: blocked.Quantile(0.99).Seconds(), LongestSeconds: blocked.Longest.Seconds(),
	}, nil
}

// sinceThen is the difference of two histograms. Its longest value may be from before then: without exchanges there
// is no wait.
func sinceThen(now, then stats.Histogram) stats.Histogram {
	for i := range now.Counts {
		now.Counts[i] -= then.Counts[i]
	}
	return now
}

// disturb trains on each side in turn during uninterrupted exchanges.
func (b *exchangeBench) disturb(ctx context.Context) error {
	const endless = math.MaxInt
	b.measured.machine.arm(endless)
	active, err := b.measured.train(ctx)
	if err != nil {
		return err
	}
	passive, err := b.other.ask(ctx, doTrain)
	if err != nil {
		return err
	}
	b.measured.machine.remaining.Store(0)
	b.blocked = []disturbance{active, passive.disturbance}
	if err := b.measured.settle(ctx); err != nil {
		return err
	}
	_, _, err = b.measured.look()
	return err
}

// sliceArithmetic measures the arithmetic of one slice that the passive side does under the slice's lock: the median
// and the longest time. No slice is in the caches, as in an exchange of a large model.
func (l *load) sliceArithmetic(s exchangeSettings, codec quant.Codec) (middle, longest float64, err error) {
	code := l.whole[:codec.MaxSize(min(s.slice, s.parameters))]
	code = code[:codec.Encode(code, l.values[:min(s.slice, s.parameters)], nil)]
	theirs, diff := make(tensor.Vector, s.slice), make(tensor.Vector, s.slice)
	var times []float64
	for at := 0; at+s.slice <= s.parameters || at == 0; at += s.slice {
		own := l.values[at:min(at+s.slice, s.parameters)]
		theirs, diff := theirs[:len(own)], diff[:len(own)]
		taken, err := timed(func() error {
			if err := codec.Decode(theirs, code, own); err != nil {
				return err
			}
			distance := tensor.SquaredDistance(theirs, own)
			tensor.ScaledDifference(diff, float32(min(distance, 0.5)), theirs, own)
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		times = append(times, taken.seconds)
		longest = max(longest, taken.seconds)
	}
	return measure.Median(times), longest, nil
}
