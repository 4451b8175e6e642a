package step

import (
	"fmt"
	"runtime"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// sampleTime is the least time of a sample: much longer than reading a clock, and than a tick of the system. Tests
// that do not check times shorten it.
var sampleTime = 40 * time.Millisecond

const (
	maxPasses = 1 << 20

	// peakIterations is the iterations of one pass of the loop in registers: well below a millisecond.
	peakIterations = 10_000
)

// stepBench has a step, its references, and their samples.
type stepBench struct {
	settings   stepSettings
	layout     *tensor.Layout
	operations float64 // of one step

	peak, ours *contender
	gonum      *contender // nil if gonum has no such step
	work       *stepWork  // of the measured step
	peakRate   float64    // operations in one pass
}

func newStepBench(s stepSettings, model nets.Model) *stepBench {
	b := &stepBench{settings: s, layout: model.Layout(), work: newStepWork(s, model)}
	b.operations = float64(s.batch) * pictureOperations(s.model, model.Layout(), s.shape())
	b.peak = newContender(func() { b.peakRate = tensor.MultiplyAddPeak(peakIterations) }, func() {})
	b.ours = newContender(func() { b.work.train(model) }, b.work.reset)
	if onGonum(s.model) {
		net, work := newGonumNet(model.Layout(), s.shape(), s.batch), b.work.clone()
		b.gonum = newContender(func() { net.step(work) }, work.reset)
	}
	return b
}

// round takes a sample of each contender.
func (b *stepBench) round() {
	b.peak.sample()
	b.ours.sample()
	if b.gonum != nil {
		b.gonum.sample()
	}
}

// contender is measured in turn with others.
type contender struct {
	pass, reset func()
	passes      int // in each sample

	// One value for each sample, divided by its passes: time, processor time if the system reports it, allocations.
	seconds, cpu, mallocs []float64
}

// newContender finds out how many passes a sample needs. That also loads pages and allocates the memory that steps
// reuse.
func newContender(pass, reset func()) *contender {
	c := &contender{pass: pass, reset: reset, passes: 1}
	for ; c.passes < maxPasses; c.passes *= 2 {
		reset()
		if c.timed() >= sampleTime.Seconds() {
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
	seconds := c.timed()
	cpu = host.ProcessorSeconds() - cpu
	runtime.ReadMemStats(&after)
	passes := float64(c.passes)
	c.seconds, c.cpu = append(c.seconds, seconds/passes), append(c.cpu, cpu/passes)
	c.mallocs = append(c.mallocs, float64(after.Mallocs-before.Mallocs)/passes)
}

// timed measures the passes of a sample, in seconds.
func (c *contender) timed() float64 {
	began := time.Now()
	for range c.passes {
		c.pass()
	}
	return max(time.Since(began), 1).Seconds()
}

// rates returns perPass divided by the seconds of each sample.
func (c *contender) rates(perPass float64) []float64 {
	all := make([]float64, len(c.seconds))
	for i, seconds := range c.seconds {
		all[i] = perPass / seconds
	}
	return all
}

// result computes the figures from the samples.
func (b *stepBench) result() stepResult {
	const giga = 1e9
	pictures := float64(b.settings.batch)
	ours, peak := b.ours.rates(b.operations/giga), b.peak.rates(b.peakRate/giga)
	shape := b.settings.shape()
	r := stepResult{
		Model: b.settings.model, Batch: b.settings.batch, Parameters: b.layout.Len(),
		Input:            fmt.Sprintf("dense random %d×%d×%d", shape.Height, shape.Width, shape.Channels),
		SamplesPerSecond: measure.Median(b.ours.rates(pictures)), StepSeconds: measure.Median(b.ours.seconds), StepCPUSeconds: measure.Median(b.ours.cpu), Operations: b.operations,
		GFLOPS: measure.Median(ours), PeakGFLOPS: measure.Median(peak), ShareOfPeak: measure.Median(measure.Quotients(ours, peak)),
		AllocsPerStep: measure.Whole(b.ours.mallocs, 1),
		Instructions:  tensor.Instructions(), Rounds: b.settings.rounds, GOMAXPROCS: runtime.GOMAXPROCS(0), CPU: host.Processor(),
	}
	if nets.ReadsText(b.settings.model) {
		r.Input = fmt.Sprintf("windows of %d random bytes", shape.Width)
		r.TokensPerSecond = r.SamplesPerSecond * float64(shape.Width)
	}
	if b.gonum != nil {
		r.GonumSamples = measure.Median(b.gonum.rates(pictures))
		r.RatioToGonum = measure.Median(measure.Quotients(b.gonum.seconds, b.ours.seconds))
	}
	return r
}
