// Package state is the command bench state: how soon a latecomer has the model.
package state

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	defaultStateRounds = 5
	minStateRounds     = 3
	defaultDonors      = 2
	maxDonors          = 3
)

// stateSettings are the flags of bench state.
type stateSettings struct {
	parameters int
	donors     int
	rounds     int
	slice      int
	seed       uint64
	json       bool
}

// Command makes the command that measures how a newcomer gets the model.
func Command(std cli.Streams) *cobra.Command {
	var s stateSettings
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Measure how soon a latecomer has the flock's model beside moving the same bytes",
		Long: `State starts donors with a model of their own, and then newcomers, one after the
other, each of which copies the model from all donors at once, over TLS on loopback.
A copy is timed from the first request until every slice has been verified against the
manifest that its donor signed and is in place: the donors' freezing and hashing of
their copies counts. Before and after each, the same bytes are moved once, with no
arithmetic, through one stream of the same kind. All peers are in this process.
Figures are medians of the rounds, the ratio is the median of the rounds' ratios.`,
		Example: `  gossipnode bench state
  gossipnode bench state --parameters 1000000 --donors 3 --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure.Run(cmd, &s, &s.json, std) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&s.parameters, "parameters", measure.DefaultParameters, "values of the model")
	flags.IntVar(&s.donors, "donors", defaultDonors, "peers that have the model and give it")
	flags.IntVar(&s.rounds, "rounds", defaultStateRounds, "rounds, after one to warm up")
	flags.IntVar(&s.slice, "slice", measure.DefaultSlice, "values in a slice")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the values")
	flags.BoolVar(&s.json, "json", false, "print the figures as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

func (s stateSettings) Validate(sources cli.Origins) error {
	return sources.Usage(
		cli.Within("parameters", s.parameters, 1, measure.MaxParameters),
		cli.Within("donors", s.donors, 1, maxDonors),
		cli.Within("rounds", s.rounds, minStateRounds, measure.MaxRounds),
		cli.Within("slice", s.slice, 1, measure.MaxSlice),
	)
}

// stateResult is what bench state has to tell.
type stateResult struct {
	Parameters int `json:"parameters"`
	Donors     int `json:"donors"`
	Rounds     int `json:"rounds"`
	Slices     int `json:"slices"`
	// Seconds are from the first request until the verified state is in place,
	// JoinSeconds from the start of the newcomer's peer until it may take its first
	// step.
	Seconds          float64 `json:"seconds"`
	JoinSeconds      float64 `json:"join_seconds"`
	RawLibp2pSeconds float64 `json:"raw_libp2p_seconds"`
	RatioToRawLibp2p float64 `json:"ratio_to_raw_libp2p"`
	// RatioWorst is the largest of the rounds' ratios.
	RatioWorst float64 `json:"ratio_worst"`
	// DonorsUsed is the least number of donors whose slices a newcomer got, Again
	// how many slices were asked for twice in all.
	DonorsUsed int    `json:"donors_used"`
	Again      uint64 `json:"asked_again"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	CPU        string `json:"cpu"`
}

// String is the figures for a person.
func (r stateResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\nA newcomer to a run of %s parameters, %s, medians of %s:\n", measure.Thousands(uint64(r.Parameters)), cli.Plural(uint64(r.Donors), "donor"), cli.Plural(uint64(r.Rounds), "round"))
	fmt.Fprintf(&text, "%-44s %10.3f ms\n", "verified copy of the model", 1000*r.Seconds)
	fmt.Fprintf(&text, "%-44s %10.3f ms\n", "same bytes once, libp2p", 1000*r.RawLibp2pSeconds)
	fmt.Fprintf(&text, "%-44s %10.3f ms\n", "from its start until it may train", 1000*r.JoinSeconds)
	fmt.Fprintf(&text, "\nThe copy takes %.2f times as long as its bytes through libp2p (at worst %.2f), in %s of at least %s; %s asked for twice.\n",
		r.RatioToRawLibp2p, r.RatioWorst, cli.Plural(uint64(r.Slices), "slice"), cli.Plural(uint64(r.DonorsUsed), "donor"), cli.Plural(r.Again, "slice"))
	fmt.Fprintf(&text, "Security %s, muxer %s, GOMAXPROCS %d, %s.\n", measure.Security, measure.Muxer, r.GOMAXPROCS, r.CPU)
	return text.String()
}
