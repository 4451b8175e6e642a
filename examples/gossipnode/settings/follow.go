package settings

import (
	"math"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/follow"
)

// following says how a peer goes on training on what arrives.
type following struct {
	Follow string // the folder
	Begun  bool   // the data are the first file that came
	Price  float64
	Replay int
}

const (
	followFlag = "follow"
	priceFlag  = "price"
	replayFlag = "replay"
	// followEpochs and followTableEpochs are the passes of a training, unless --epochs says.
	followEpochs, followTableEpochs = 2.0, 8.0
)

func (f *following) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Follow, followFlag, "", "`FOLDER` into which files come, on which all go on training, by --policy, until --deadline or Ctrl-C; each training is of --epochs passes")
	flags.Float64Var(&f.Price, priceFlag, follow.DefaultPrice, "with --follow and --policy cost-aware: accuracy, 0 to 1, that a second without training is worth; less trains more often")
	flags.IntVar(&f.Replay, replayFlag, follow.DefaultKeep, "with --follow, how many old rows are kept and trained on again, drawn from all that came")
	cli.Group(flags, "Data that arrive")
}

// ForFollow is the settings of a member that follows data: its rate does not follow the work, which has no end.
func ForFollow(s Settings) Settings {
	if s.Follow != "" {
		s.Schedule, s.Warmup, s.Steps, s.Epochs = scheduleConstant, 0, math.MaxInt32, s.Passes()
	}
	return s
}

// followFaults checks what goes with --follow.
func followFaults(s Settings, from cli.Origins) (faults cli.Faults) {
	if s.Follow == "" {
		faults.If(s.follows(), policyFlag, "%s: is for --%s FOLDER", s.Policy, followFlag)
		faults.If(s.Price != follow.DefaultPrice, priceFlag, "is for --%s FOLDER", followFlag)
		faults.If(s.Replay != follow.DefaultKeep, replayFlag, "is for --%s FOLDER", followFlag)
		return faults
	}
	faults.If(s.Policy != "" && !s.follows(), policyFlag, "%q: with --%s, want %s (and how models are coded by --%s)", s.Policy, followFlag, cli.List(follow.Policies()), codecFlag)
	faults.If(!(s.Price > 0 && s.Price <= 1), priceFlag, "%v: want a number above 0 and at most 1", s.Price)
	faults.Add(cli.Within(replayFlag, s.Replay, 1, follow.MaxKeep))
	faults.If(s.Strategy != StrategyADPSGD && s.Strategy != StrategyAlone, followFlag, "is for --strategy %s and %s, not %s", StrategyADPSGD, StrategyAlone, s.Strategy)
	faults.If(!s.IsTable() && dataset.Later(s.Dataset) == "", followFlag, "is for pictures and tables, not %s", s.Dataset)
	faults.If(s.Begins() && !s.IsTable() && (s.Dataset == dataset.Images || strings.HasPrefix(s.Dataset, "cifar")), "data", "is missing: the shape of pictures in archives is that of the data that the run begins with")
	faults.If(s.Gives() || s.TrainOnly || s.ModelStages() > 1 || s.Table.ShareRows > 0 || s.GlobalBatch > 0 || s.Accumulate > 1,
		followFlag, "is for peers that train the whole model on their own data: leave out --hold, --%s, --train-only, --stages K, --%s, --%s and --%s", holdAndTrainFlag, shareRowsFlag, GlobalBatchFlag, accumulateFlag)
	faults.If(s.TaskFile != "" || len(s.Until) > 0 || s.Final == FinalMerge || s.CrossEvaluate, followFlag, "goes with none of --tasks, --%s, --final %s and --cross-evaluate: leave them out", untilFlag, FinalMerge)
	faults.If(from.Source("steps") > cli.FromDefault, "steps", "a training takes as many as the rows ask for: with --%s give --epochs", followFlag)
	return faults
}
