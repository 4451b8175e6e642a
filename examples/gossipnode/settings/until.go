package settings

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// untilSettings end a run before its work is done.
type untilSettings struct {
	Until         []string
	Deadline      time.Duration
	History       string
	Trace         string
	CrossEvaluate bool
	TaskFile      string
}

const (
	untilFlag    = "until"
	deadlineFlag = "deadline"
	// maxPlateau bounds the evaluations of a plateau.
	maxPlateau = 1 << 20
)

func (s *untilSettings) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Until, untilFlag, nil, "`AIM` at which all stop: accuracy=0.97, loss=0.1, or plateau=5 (evaluations without progress), by the median of all on held-out data; repeatable")
	flags.DurationVar(&s.Deadline, deadlineFlag, 0, "time after the first step at which all stop, such as 10m; the start tells whether the work can be done by then (default: none)")
	flags.StringVar(&s.History, "history", "", "`FILE` to write how the run goes into, a line of JSON a moment and peer, which gossipnode plot draws; begun anew unless --checkpoint is given")
	flags.StringVar(&s.Trace, "trace", "", "`FILE` to write when each peer computes, exchanges and waits into, in Chrome's trace format (chrome://tracing, Perfetto)")
	flags.BoolVar(&s.CrossEvaluate, "cross-evaluate", false, "at the end, evaluate every member's model on every member's held-out data; give it to all members")
	flags.StringVar(&s.TaskFile, "tasks", "", "`FILE` of tasks, as for gossipnode plan, that the members carry out instead of epochs or steps; it may grow meanwhile. All have all the data")
	cli.Group(flags, "The end and the course of a run")
}

func (s untilSettings) faults() (faults cli.Faults) {
	_, err := s.Aim()
	faults.Add(err)
	faults.If(s.History != "" && s.History == s.Trace, "trace", "%s: --history goes there already", s.Trace)
	faults.If(s.Deadline < 0, deadlineFlag, "%s: want a time above 0, such as 10m", s.Deadline)
	return faults
}

// Aim is what --until and --deadline ask for, without Evaluate.
func (s untilSettings) Aim() (aim peer.Until, err error) {
	aim.Deadline = s.Deadline
	for i, text := range s.Until {
		name, value, _ := strings.Cut(text, "=")
		number, err := strconv.ParseFloat(value, 64)
		twice := slices.ContainsFunc(s.Until[:i], func(before string) bool { return strings.HasPrefix(before, name+"=") })
		switch above := err == nil && number > 0 && !twice; {
		case above && name == "accuracy" && number <= 1:
			aim.Accuracy = number
		case above && name == "loss" && number <= math.MaxFloat64:
			aim.Loss = number
		case above && name == "plateau" && number <= maxPlateau && number == math.Trunc(number):
			aim.Plateau = int(number)
		default:
			return aim, cli.Faultf(untilFlag, "%q: want accuracy=A with A above 0 and at most 1, as in accuracy=0.97, loss=L with L above 0, or plateau=N with a number of evaluations; each once", text)
		}
	}
	return aim, nil
}

// ForTasks are the settings of a member that carries out tasks: it has all the data, of which sample i is the same at all,
// and its rate does not follow the work, which may grow.
func (s Settings) ForTasks() Settings {
	if s.TaskFile != "" {
		s.Part, s.Schedule, s.Warmup, s.Steps, s.Epochs = "0/1", scheduleConstant, 0, math.MaxInt32, 0
	}
	return s
}

// ends checks that members can tell each other what ends the run, and how good their models are.
func (s Settings) ends() (faults cli.Faults) {
	faults.If(s.CrossEvaluate && s.Strategy == StrategyAlone, "cross-evaluate", "with --strategy %s no peer knows of another", StrategyAlone)
	faults.If(s.Digests < 0 && (len(s.Until) > 0 || s.Deadline > 0), "digests", "%s: --until and --deadline need what members tell each other: leave it out", s.Digests)
	if s.TaskFile != "" {
		faults.If(s.Strategy != StrategyADPSGD && s.Strategy != StrategyAlone, "tasks", "are for --strategy %s and %s, not %s", StrategyADPSGD, StrategyAlone, s.Strategy)
		faults.If(s.IsTable(), "tasks", "are for pictures and texts, not %s", s.Dataset)
		faults.If(s.Gives() || s.TrainOnly, "tasks", "are for peers that have all the data: leave out --hold, --%s and --train-only", holdAndTrainFlag)
		faults.If(s.GlobalBatch > 0 || s.Checkpoint != "" || s.Final == FinalMerge || len(s.Until) > 0 || s.Deadline > 0,
			"tasks", "go with none of --%s, --checkpoint, --final %s, --%s and --%s: leave them out", GlobalBatchFlag, FinalMerge, untilFlag, deadlineFlag)
	}
	return faults
}

// StoppedBy is what ended a run, as results say it; by is what package peer says.
func (s Settings) StoppedBy(by string) string {
	switch {
	case s.TaskFile != "":
		return "tasks"
	case by != "work":
		return by
	case s.Steps > 0:
		return "steps"
	}
	return "epochs"
}
