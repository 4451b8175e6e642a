package bench

import (
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/tensor"
)

// stepResult is what bench step has to tell. The figures of gonum are absent where
// it has no such step.
type stepResult struct {
	Model            string  `json:"model"`
	Batch            int     `json:"batch"`
	Parameters       int     `json:"parameters"`
	Input            string  `json:"input"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	StepSeconds      float64 `json:"step_seconds"`
	StepCPUSeconds   float64 `json:"step_cpu_seconds,omitempty"` // below StepSeconds if others kept the core busy too
	Operations       float64 `json:"operations_per_step"`
	GFLOPS           float64 `json:"gflops"`
	PeakGFLOPS       float64 `json:"peak_gflops"`
	ShareOfPeak      float64 `json:"share_of_peak"`
	GonumSamples     float64 `json:"gonum_samples_per_second,omitempty"`
	RatioToGonum     float64 `json:"ratio_to_gonum,omitempty"`
	AllocsPerStep    float64 `json:"allocs_per_step"`
	Instructions     string  `json:"instructions"`
	Rounds           int     `json:"rounds"`
	GOMAXPROCS       int     `json:"gomaxprocs"`
	CPU              string  `json:"cpu"`
}

// result makes figures of the samples.
func (b *stepBench) result() stepResult {
	const giga = 1e9
	pictures := float64(b.settings.batch)
	ours, peak := b.ours.rates(b.operations/giga), b.peak.rates(b.peakRate/giga)
	shape := stepShape(b.settings.model)
	r := stepResult{
		Model: b.settings.model, Batch: b.settings.batch, Parameters: b.layout.Len(),
		Input:            fmt.Sprintf("dense random %d×%d×%d", shape.Height, shape.Width, shape.Channels),
		SamplesPerSecond: median(b.ours.rates(pictures)), StepSeconds: median(b.ours.seconds), StepCPUSeconds: median(b.ours.cpu), Operations: b.operations,
		GFLOPS: median(ours), PeakGFLOPS: median(peak), ShareOfPeak: median(quotients(ours, peak)),
		// A whole number, as testing.AllocsPerRun gives: what happens once in a sample
		// of many steps is not the step's.
		AllocsPerStep: math.Floor(median(b.ours.mallocs)),
		Instructions:  tensor.Instructions(), Rounds: b.settings.rounds, GOMAXPROCS: runtime.GOMAXPROCS(0), CPU: host.Processor(),
	}
	if b.gonum != nil {
		r.GonumSamples = median(b.gonum.rates(pictures))
		r.RatioToGonum = median(quotients(b.gonum.seconds, b.ours.seconds))
	}
	return r
}

// String is the figures as a table, with all that they depend on.
func (r stepResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "A step of %s, batch of %d, %s: %s parameters, %.1f million operations.\n\n",
		r.Model, r.Batch, r.Input, thousands(uint64(r.Parameters)), r.Operations/1e6)
	row := func(what string, samples, gflops, share float64) {
		fmt.Fprintf(&text, "%-22s %12s %10.1f %8.3f\n", what, thousands(uint64(samples)), gflops, share)
	}
	fmt.Fprintf(&text, "%-22s %12s %10s %8s\n", "", "samples/s", "GFLOP/s", "of peak")
	fmt.Fprintf(&text, "%-22s %12s %10.1f %8.3f\n", "multiply-adds alone", "", r.PeakGFLOPS, 1.0)
	row("step", r.SamplesPerSecond, r.GFLOPS, r.ShareOfPeak)
	if r.GonumSamples > 0 {
		row("step on gonum", r.GonumSamples, r.Operations*r.GonumSamples/float64(r.Batch)/1e9, r.ShareOfPeak/r.RatioToGonum)
		fmt.Fprintf(&text, "\nThe step takes %.3f ms (%.3f of the processor), is %.2f times as fast as gonum's, and allocates %.0f times.\n", 1000*r.StepSeconds, 1000*r.StepCPUSeconds, r.RatioToGonum, r.AllocsPerStep)
	} else {
		fmt.Fprintf(&text, "\nThe step takes %.3f ms (%.3f of the processor) and allocates %.0f times; there is none on gonum to hold it against.\n", 1000*r.StepSeconds, 1000*r.StepCPUSeconds, r.AllocsPerStep)
	}
	fmt.Fprintf(&text, "Medians of %s. One core of %s, GOMAXPROCS %d, instructions: %s.\n", cli.Plural(uint64(r.Rounds), "round"), r.CPU, r.GOMAXPROCS, r.Instructions)
	return text.String()
}
