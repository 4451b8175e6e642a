// Package kernel is the command bench kernel: the arithmetic on vectors beside a copy of the
// same bytes.
package kernel

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// The sizes of a vector that are measured unless others are asked for: one
	// that a core's caches hold, and one that none does.
	InsideCaches  = 256 << 10
	OutsideCaches = 100_000_000

	minKernelBytes = 4 << 10
	maxKernelBytes = 1 << 30
	maxKernelSizes = 8

	DefaultKernelRounds = 15
	minKernelRounds     = 9

	// passBytes is about what one timed sample goes through: small vectors are gone
	// through several times, so that a sample is much longer than reading a clock.
	passBytes = 8 << 20
)

// Settings are the flags of bench kernel.
type Settings struct {
	Sizes  []int
	Rounds int
	Seed   uint64
	JSON   bool
}

// Command makes the command that measures the arithmetic.
func Command(std cli.Streams) *cobra.Command {
	var s Settings
	cmd := &cobra.Command{
		Use:   "kernel",
		Short: "Measure the arithmetic on vectors beside a copy of the same bytes",
		Long: `Kernel measures the loops that exchanges and optimizers consist of, on one
core, each in turn with Go's copy of one vector, in the caches and out of them.
GB/s are 10^9 bytes of one vector (four for each value) a second, however many
vectors a loop reads and writes. A ratio is the median of those of the rounds.`,
		Example: `  gossipnode bench kernel
  gossipnode bench kernel --json --rounds 21
  gossipnode bench kernel --bytes 1048576`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure.Run(cmd, &s, &s.JSON, std) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntSliceVar(&s.Sizes, "bytes", []int{InsideCaches, OutsideCaches}, "sizes of a vector, in bytes")
	flags.IntVar(&s.Rounds, "rounds", DefaultKernelRounds, "samples of each kernel, and of the copy beside it")
	flags.Uint64Var(&s.Seed, "seed", 1, "seed of the values")
	flags.BoolVar(&s.JSON, "json", false, "print the figures as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

func (s Settings) Validate(sources cli.Origins) error {
	var faults []error
	if len(s.Sizes) == 0 || len(s.Sizes) > maxKernelSizes {
		faults = append(faults, cli.Faultf("bytes", "has %d sizes: want 1 to %d", len(s.Sizes), maxKernelSizes))
	}
	for _, size := range s.Sizes {
		faults = append(faults, cli.Within("bytes", size, minKernelBytes, maxKernelBytes))
	}
	faults = append(faults, cli.Within("rounds", s.Rounds, minKernelRounds, measure.MaxRounds))
	return sources.Usage(faults...)
}

// kernelResult is what bench kernel has to tell.
type kernelResult struct {
	Kernels    []Figure `json:"kernels"`
	CPU        string   `json:"cpu"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Rounds     int      `json:"rounds"`
}

// Figure is one kernel at one size.
type Figure struct {
	Name        string  `json:"name"`
	Bytes       int     `json:"bytes"`
	GBPerSecond float64 `json:"gb_per_second"`
	CopyGB      float64 `json:"copy_gb_per_second"`
	Ratio       float64 `json:"ratio"`
}

// Measure measures every kernel at every size. It stays on one thread: the core's
// caches are warm for it.
func (s Settings) Measure(cli.Streams) (kernelResult, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	total := kernelResult{CPU: host.Processor(), GOMAXPROCS: runtime.GOMAXPROCS(0), Rounds: s.Rounds}
	for _, size := range s.Sizes {
		kernels, copied, err := newKernels(size/tensor.ValueSize, s.Seed)
		if err != nil {
			return total, err
		}
		runtime.GC() // no sample should pay for what went before
		for _, k := range kernels {
			total.Kernels = append(total.Kernels, s.Compare(k, copied, size))
		}
	}
	return total, nil
}

// Compare measures a kernel and the copy in turn.
func (s Settings) Compare(k, copied measure.Kernel, size int) Figure {
	passes := max(1, passBytes/size)
	k.Timed(1) // brings in pages, and optimizers' states
	var ours, reference []float64
	for range s.Rounds {
		reference = append(reference, copied.Timed(passes))
		ours = append(ours, k.Timed(passes))
	}
	rate := func(seconds []float64) float64 { return float64(size) / 1e9 / measure.Median(seconds) }
	return Figure{
		Name: k.Name, Bytes: size, GBPerSecond: rate(ours), CopyGB: rate(reference),
		Ratio: measure.Median(measure.Quotients(reference, ours)),
	}
}

// String is the figures as a table.
func (r kernelResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "One core of %s, GOMAXPROCS %d, medians of %d rounds in turn with a copy.\n", r.CPU, r.GOMAXPROCS, r.Rounds)
	size := 0
	for _, k := range r.Kernels {
		if k.Bytes != size {
			size = k.Bytes
			fmt.Fprintf(&text, "\n%-18s %8s %8s %7s\n", measure.Thousands(uint64(size))+" bytes", "GB/s", "copy", "ratio")
		}
		fmt.Fprintf(&text, "%-18s %8.2f %8.2f %7.2f\n", k.Name, k.GBPerSecond, k.CopyGB, k.Ratio)
	}
	return text.String()
}
