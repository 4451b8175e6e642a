package step

import (
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// stepResult is the output of bench step. The figures of gonum are absent if it has no such step.
type stepResult struct {
	Model            string  `json:"model"`
	Batch            int     `json:"batch"`
	Parameters       int     `json:"parameters"`
	Input            string  `json:"input"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	TokensPerSecond  float64 `json:"tokens_per_second,omitempty"` // only for a gpt
	StepSeconds      float64 `json:"step_seconds"`
	StepCPUSeconds   float64 `json:"step_cpu_seconds,omitempty"` // below StepSeconds if other processes used the core
	Operations       float64 `json:"operations_per_step"`
	GFLOPS           float64 `json:"gflops"`
	PeakGFLOPS       float64 `json:"peak_gflops"`
	ShareOfPeak      float64 `json:"share_of_peak"`
	gonumFigures
	AllocsPerStep float64 `json:"allocs_per_step"`
	Instructions  string  `json:"instructions"`
	Rounds        int     `json:"rounds"`
	GOMAXPROCS    int     `json:"gomaxprocs"`
	CPU           string  `json:"cpu"`
}

// gonumFigures has the figures of the same step on gonum.
type gonumFigures struct {
	GonumSamples float64 `json:"gonum_samples_per_second,omitempty"`
	RatioToGonum float64 `json:"ratio_to_gonum,omitempty"`
}

// String is a table of the figures and all settings.
func (r stepResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "A step of %s, batch of %d, %s: %s parameters, %.1f million operations.\n\n",
		r.Model, r.Batch, r.Input, measure.Thousands(uint64(r.Parameters)), r.Operations/1e6)
	row := func(what string, samples, gflops, share float64) {
		fmt.Fprintf(&text, "%-22s %12s %10.1f %8.3f\n", what, measure.Thousands(uint64(samples)), gflops, share)
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
	if r.TokensPerSecond > 0 {
		fmt.Fprintf(&text, "%s tokens a second.\n", measure.Thousands(uint64(r.TokensPerSecond)))
	}
	fmt.Fprintf(&text, "Medians of %s. One core of %s, GOMAXPROCS %d, instructions: %s.\n", cli.Plural(uint64(r.Rounds), "round"), r.CPU, r.GOMAXPROCS, r.Instructions)
	return text.String()
}
