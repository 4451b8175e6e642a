// Package codec is the command bench codec: what codecs of slices cost and yield.
package codec

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/kernel"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	defaultApart = 0.01
	maxApart     = 10

	// allocPasses are those of which the median allocations are told.
	allocPasses = 9
)

// codecSettings are the flags of bench codec.
type codecSettings struct {
	kernel.Settings
	codecs []string
	apart  float64
}

// Command makes the command that measures codecs.
func Command(std cli.Streams) *cobra.Command {
	var s codecSettings
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Measure the codecs' speed, size and error",
		Long: `Codec measures what each codec of an exchange costs and yields, on one core and
slice by slice, each in turn with Go's copy of as many values:

  encode  the active side's slice to a CODE
  answer  that code to values, their difference from the passive side's own slice,
          and half of that to a DIFF
  apply   that DIFF to values, which are added to the slice

All that a step reads comes from memory. Encode writes to one frame, which the next slice
overwrites, as a lane of an exchange does; DIFFs go to memory.

GB/s are 10^9 bytes of float32 parameters a second. A ratio is the median of those
of the rounds. Bits are those of a parameter in either direction, headers of blocks
included. The two models differ by normal noise of --apart times their size; the
error is that of the difference which both sides apply, relative to its length.`,
		Example: `  gossipnode bench codec
  gossipnode bench codec --json --codecs int8,lattice6+4 --apart 0.001`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure.Run(cmd, &s, &s.JSON, std) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&s.codecs, "codecs", []string{"raw", "bf16", "fp16", "int8", "lattice8+4", "lattice6+4", "lattice4+1"}, "codecs to measure")
	flags.Float64Var(&s.apart, "apart", defaultApart, "distance between the two models, relative to their length")
	flags.IntSliceVar(&s.Sizes, "bytes", []int{kernel.InsideCaches, kernel.OutsideCaches}, "sizes of a model, in bytes")
	flags.IntVar(&s.Rounds, "rounds", kernel.DefaultKernelRounds, "samples of each codec, and of the copy beside it")
	flags.Uint64Var(&s.Seed, "seed", 1, "seed of the values")
	flags.BoolVar(&s.JSON, "json", false, "print the figures as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

func (s codecSettings) Validate(sources cli.Origins) error {
	faults := []error{s.Settings.Validate(sources)}
	if len(s.codecs) == 0 || len(s.codecs) > len(quant.Names()) {
		faults = append(faults, cli.Faultf("codecs", "has %d names: want 1 to %d", len(s.codecs), len(quant.Names())))
	}
	for _, name := range s.codecs {
		faults = append(faults, cli.OneOf("codecs", name, quant.Names()))
	}
	if !(s.apart > 0 && s.apart <= maxApart) {
		faults = append(faults, cli.Faultf("apart", "%v: want more than 0, at most %d", s.apart, maxApart))
	}
	return sources.Usage(faults...)
}

// codecResult is what bench codec has to tell.
type codecResult struct {
	Codecs       []codecFigure `json:"codecs"`
	Speeds       []codecSpeed  `json:"speeds"`
	Apart        float64       `json:"apart"`
	CPU          string        `json:"cpu"`
	Instructions string        `json:"instructions"`
	GOMAXPROCS   int           `json:"gomaxprocs"`
	Rounds       int           `json:"rounds"`
}

// codecFigure is what a codec makes of a slice.
type codecFigure struct {
	Name          string  `json:"name"`
	BitsThere     float64 `json:"bits_there"`
	BitsBack      float64 `json:"bits_back"`
	RelativeError float64 `json:"relative_error"`
}

// codecSpeed is one step of a codec at one size.
type codecSpeed struct {
	Codec string `json:"codec"`
	Step  string `json:"step"`
	kernel.Figure
	AllocsPerSlice float64 `json:"allocs_per_slice"`
}

// Measure measures every codec at every size, on one thread.
func (s codecSettings) Measure(cli.Streams) (codecResult, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	total := codecResult{
		Apart: s.apart, CPU: host.Processor(), Instructions: tensor.Instructions(), GOMAXPROCS: runtime.GOMAXPROCS(0), Rounds: s.Rounds,
	}
	for i, size := range s.Sizes {
		pair := newModelPair(size/tensor.ValueSize, s.Seed, s.apart)
		for _, name := range s.codecs {
			steps, figure, err := pair.exchange(name)
			if err != nil {
				return total, err
			}
			if i == 0 {
				total.Codecs = append(total.Codecs, figure)
			}
			runtime.GC() // no sample should pay for what went before
			for _, k := range steps {
				allocs := measure.Whole(k.Mallocs(allocPasses), float64(pair.slices()))
				figure := s.Compare(k, pair.copied(), size)
				total.Speeds = append(total.Speeds, codecSpeed{name, k.Name, figure, allocs})
			}
		}
	}
	return total, nil
}

// String is the figures as tables.
func (r codecResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Models that are %v of their length apart.\n\n%-14s %8s %8s %10s\n", r.Apart, "codec", "there", "back", "error")
	for _, c := range r.Codecs {
		fmt.Fprintf(&text, "%-14s %8.3f %8.3f %10.2g\n", c.Name, c.BitsThere, c.BitsBack, c.RelativeError)
	}
	fmt.Fprintf(&text, "\nOne core of %s (%s), GOMAXPROCS %d, medians of %d rounds in turn with a copy.\n", r.CPU, r.Instructions, r.GOMAXPROCS, r.Rounds)
	size := 0
	for _, v := range r.Speeds {
		if v.Bytes != size {
			size = v.Bytes
			fmt.Fprintf(&text, "\n%-20s %8s %8s %7s\n", measure.Thousands(uint64(size))+" bytes", "GB/s", "copy", "ratio")
		}
		fmt.Fprintf(&text, "%-20s %8.2f %8.2f %7.2f\n", v.Codec+" "+v.Step, v.GBPerSecond, v.CopyGB, v.Ratio)
	}
	return text.String()
}
