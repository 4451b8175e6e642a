package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// finalSettings say what model a peer ends with.
type finalSettings struct {
	Final        string
	FinalWeights string
	FinalWait    time.Duration
}

const (
	finalFlag        = "final"
	finalWeightsFlag = "final-weights"
	finalWaitFlag    = "final-wait"

	FinalLocal = "local"
	FinalMerge = "merge"
	// FinalUnmerged is not asked for: it is what a merge comes to that fails.
	FinalUnmerged = "unmerged"

	weightsEqual   = "equal"
	WeightsSamples = "samples"

	defaultFinalWait = 10 * time.Second
	// finalWaits is how many times as long as it waits for others a peer takes to
	// merge, at most: for those who come late, and for attempts that a death breaks off.
	finalWaits = 4
)

func (s *finalSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Final, finalFlag, FinalLocal, "model that a peer ends with: local (its own, near the others') or merge (the mean of all; docs/TUNING.md), the same for all peers; for adpsgd")
	flags.StringVar(&s.FinalWeights, finalWeightsFlag, weightsEqual, "what a peer's model counts in the merge: equal, or samples (as many as it has training pictures)")
	flags.DurationVar(&s.FinalWait, finalWaitFlag, defaultFinalWait, "how long the merge waits for a peer that is silent, and for one transfer; after four times that a peer keeps its own model")
}

// faults are what is wrong with them beside a strategy.
func (s finalSettings) faults(strategy string) []error {
	var faults cli.Faults
	faults.Add(
		cli.OneOf(finalFlag, s.Final, []string{FinalLocal, FinalMerge}),
		cli.OneOf(finalWeightsFlag, s.FinalWeights, []string{weightsEqual, WeightsSamples}),
	)
	faults.If(s.FinalWait <= 0, finalWaitFlag, "%s: want a positive time", s.FinalWait)
	faults.If(s.Final == FinalMerge && strategy != StrategyADPSGD, finalFlag, "%s is for %s: with --strategy %s leave it out", FinalMerge, StrategyADPSGD, strategy)
	faults.If(s.Final != FinalMerge && s.FinalWait != defaultFinalWait, finalWaitFlag, "needs --%s %s", finalFlag, FinalMerge)
	faults.If(s.Final != FinalMerge && s.FinalWeights == WeightsSamples, finalWeightsFlag, "needs --%s %s", finalFlag, FinalMerge)
	return faults
}

// Grace is how long a peer stays once the run is over for it; 0 is the default of package
// peer.
func (s finalSettings) Grace() time.Duration {
	if s.Final != FinalMerge {
		return 0
	}
	return finalWaits * s.FinalWait
}
