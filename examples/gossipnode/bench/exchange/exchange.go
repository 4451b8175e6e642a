// Package exchange is the command bench exchange: it compares exchanges between two processes with moving the same
// bytes.
package exchange

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/quant"
)

const (
	defaultExchangeRounds = 9
	minExchangeRounds     = 7

	defaultParameters = 25_000_000
	maxParameters     = 1 << 30
	defaultSlice      = 32 << 10

	// Bounds of package peer for slices and lanes.
	maxSlice = 64 << 10
	maxLanes = 8
)

// exchangeSettings are the flags of bench exchange.
type exchangeSettings struct {
	parameters int
	codec      string
	lanes      int
	rounds     int
	slice      int
	seed       uint64
	stages     bool
	json       bool
	// partner makes this the process that follows its parent's requests.
	partner bool
}

// Command makes the command that measures an exchange.
func Command(std cli.Streams) *cobra.Command {
	var s exchangeSettings
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Measure an exchange between two processes beside moving the same bytes",
		Long: `Exchange starts a second process on this machine and averages a model with it,
again and again. In turn with that it moves the same bytes both ways with no
arithmetic, over plain TCP and through the same kind of encrypted stream, and
averages the naive way: the whole vector written, read and averaged by a loop of
Go, and written back.

An exchange is timed from its proposal, the opening of a stream included, until
both sides have applied the last slice. Figures are medians of the rounds, and
ratios are medians of the rounds' ratios. Processor time and allocations are those
of both processes; allocations are net of moving the same bytes through libp2p.
Then a trainer steps at either side while exchanges follow each other without a
pause: how long it waited for slices is told beside the arithmetic of one slice.
Peak memory is read before the references take any.
Only Linux tells processor time, peak memory and congestion control.`,
		Example: `  gossipnode bench exchange
  gossipnode bench exchange --parameters 1000000 --codec bf16 --json
  gossipnode bench exchange --lanes 2 --rounds 15`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.partner { // its flags come from its parent
				return runPartner(s, std)
			}
			return measure.Run(cmd, &s, &s.json, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&s.parameters, "parameters", defaultParameters, "values of the model")
	flags.StringVar(&s.codec, "codec", quant.DefaultName, "codec of the exchange: raw, bf16, fp16, int8 or a lattice, as lattice6+4 (docs/CODECS.md)")
	flags.IntVar(&s.lanes, "lanes", 1, "connections that the exchange uses at once; the references use one")
	flags.IntVar(&s.rounds, "rounds", defaultExchangeRounds, "rounds, after one to warm up")
	flags.IntVar(&s.slice, "slice", defaultSlice, "values in a slice")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the values")
	flags.BoolVar(&s.stages, "stages", false, "profile both processes, and tell where an exchange's processor time goes")
	flags.BoolVar(&s.json, "json", false, "print the figures as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
	flags.BoolVar(&s.partner, "partner", false, "do what a parent process says")
	_ = flags.MarkHidden("partner") // fails only for a flag that does not exist
	return cmd
}

func (s exchangeSettings) Validate(sources cli.Origins) error {
	return sources.Usage(
		cli.Within("parameters", s.parameters, 1, maxParameters),
		cli.OneOf("codec", s.codec, quant.Names()),
		cli.Within("lanes", s.lanes, 1, maxLanes),
		cli.Within("rounds", s.rounds, minExchangeRounds, measure.MaxRounds),
		cli.Within("slice", s.slice, 1, maxSlice),
	)
}

// arguments are the flags of the other process.
func (s exchangeSettings) arguments() []string {
	return []string{
		"bench", "exchange", "--partner",
		fmt.Sprintf("--parameters=%d", s.parameters), "--codec=" + s.codec, fmt.Sprintf("--lanes=%d", s.lanes),
		fmt.Sprintf("--slice=%d", s.slice), fmt.Sprintf("--seed=%d", s.seed),
	}
}

// slices is the number of slices of the model.
func (s exchangeSettings) slices() int { return (s.parameters + s.slice - 1) / s.slice }

// coded is the number of bytes of the model's codes; size returns those of a slice.
func (s exchangeSettings) coded(size func(values int) int) int {
	whole, rest := s.parameters/s.slice, s.parameters%s.slice
	return whole*size(s.slice) + size(rest)
}
