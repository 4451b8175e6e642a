package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// finalSettings choose the model that a peer ends with.
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
	// FinalUnmerged is no value of --final: results have it after a merge that failed.
	FinalUnmerged = "unmerged"

	weightsEqual   = "equal"
	WeightsSamples = "samples"

	defaultFinalWait = 10 * time.Second
	// finalWaits times --final-wait is the longest time that a merge takes. It leaves time
	// for late peers, and for a new attempt if a peer dies during a merge.
	finalWaits = 4
)

func (s *finalSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Final, finalFlag, FinalLocal, "model that a peer ends with: local (its own, near the others') or merge (the mean of all; docs/TUNING.md), the same for all peers; for adpsgd")
	flags.StringVar(&s.FinalWeights, finalWeightsFlag, weightsEqual, "what a peer's model counts in the merge: equal, or samples (as many as it has training pictures)")
	flags.DurationVar(&s.FinalWait, finalWaitFlag, defaultFinalWait, "how long the merge waits for a peer that is silent, and for one transfer; after four times that a peer keeps its own model")
}

// faults are the errors in these settings, given the strategy.
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

// Grace is how long a peer stays after its own end of the run; 0 means the default of package
// peer.
func (s finalSettings) Grace() time.Duration {
	if s.Final != FinalMerge {
		return 0
	}
	return finalWaits * s.FinalWait
}
