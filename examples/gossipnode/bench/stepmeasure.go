package bench

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// sampleTime is how long a sample lasts at least: much longer than reading a
	// clock, and than a tick of the system.
	sampleTime = 40 * time.Millisecond
	maxPasses  = 1 << 20

	// peakIterations are those of one pass of the loop in registers, well below a
	// millisecond.
	peakIterations = 10_000
)

// errLossNotFinite cannot happen unless a step is wrong.
var errLossNotFinite = errors.New("the loss is no longer a number")

// measure takes all samples on one core. gonum starts goroutines for large products;
// GOMAXPROCS=1 keeps them on the core that ours have too.
func (s stepSettings) measure() (stepResult, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	model, err := newStepModel(s.model)
	if err != nil {
		return stepResult{}, err
	}
	b := newStepBench(s, model)
	runtime.GC() // no sample should pay for what went before
	for range s.rounds {
		b.round()
	}
	if loss := b.work.loss; math.IsNaN(loss) || math.IsInf(loss, 0) {
		return stepResult{}, fmt.Errorf("measuring a step of %s: %w", s.model, errLossNotFinite)
	}
	return b.result(), nil
}

// stepBench is a step, its references, and the samples of them.
type stepBench struct {
	settings   stepSettings
	layout     *tensor.Layout
	operations float64 // of a step

	peak, ours *contender
	gonum      *contender // nil if there is none
	work       *stepWork  // of ours
	peakRate   float64    // operations of a pass
}

func newStepBench(s stepSettings, model nets.Model) *stepBench {
	b := &stepBench{settings: s, layout: model.Layout(), work: newStepWork(s, model)}
	b.operations = float64(s.batch) * pictureOperations(s.model, model.Layout(), stepShape(s.model))
	b.peak = newContender(func() { b.peakRate = tensor.MultiplyAddPeak(peakIterations) }, func() {})
	b.ours = newContender(func() { b.work.train(model) }, b.work.reset)
	if net := newGonumNet(model.Layout(), stepShape(s.model), s.batch); net != nil {
		work := b.work.again()
		b.gonum = newContender(func() { net.step(work) }, work.reset)
	}
	return b
}

// round takes a sample of each.
func (b *stepBench) round() {
	b.peak.sample()
	b.ours.sample()
	if b.gonum != nil {
		b.gonum.sample()
	}
}

// contender is what is timed in turn with others.
type contender struct {
	loop   kernel
	reset  func()
	passes int // of a sample

	// Of a pass, a sample each: time, processor time if the system tells it, and
	// allocations.
	seconds, cpu, mallocs []float64
}

// newContender finds how many passes a sample needs. That also brings in pages and
// makes the room that steps keep.
func newContender(pass, reset func()) *contender {
	c := &contender{loop: kernel{pass: pass}, reset: reset, passes: 1}
	for ; c.passes < maxPasses; c.passes *= 2 {
		reset()
		if c.loop.timed(c.passes)*float64(c.passes) >= sampleTime.Seconds() {
			break
		}
	}
	return c
}

func (c *contender) sample() {
	var before, after runtime.MemStats
	c.reset()
	runtime.ReadMemStats(&before)
	cpu := host.ProcessorSeconds()
	seconds := c.loop.timed(c.passes)
	cpu = host.ProcessorSeconds() - cpu
	runtime.ReadMemStats(&after)
	passes := float64(c.passes)
	c.seconds, c.cpu = append(c.seconds, seconds), append(c.cpu, cpu/passes)
	c.mallocs = append(c.mallocs, float64(after.Mallocs-before.Mallocs)/passes)
}

// rates are so many a pass for each second of each sample.
func (c *contender) rates(perPass float64) []float64 {
	all := make([]float64, len(c.seconds))
	for i, seconds := range c.seconds {
		all[i] = perPass / seconds
	}
	return all
}
