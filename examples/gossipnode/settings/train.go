package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// trainSettings say how the model is trained.
type trainSettings struct {
	Steps  uint64
	Epochs float64
	Batch  int
	// Accumulate is how many batches make a step.
	Accumulate int
	Every      string
	Burst      int
	Budget     string
	Consensus  bool
	optimizerSettings
	outerSettings
	codecSettings
	StrategySettings
}

func (s *trainSettings) register(flags *pflag.FlagSet) {
	flags.Uint64Var(&s.Steps, "steps", 0, "work to do, in steps times the number of peers; instead of --epochs")
	flags.Float64Var(&s.Epochs, "epochs", 0, fmt.Sprintf("work to do, in passes of all peers over all the data (default %v; %v of tables)", defaultEpochs, tableEpochs))
	flags.IntVar(&s.Batch, "batch", defaultBatch, "pictures in a step")
	flags.IntVar(&s.Accumulate, accumulateFlag, 1, "batches in a step, one after the other, which then is one of as many pictures: for batches that memory does not hold")
	s.optimizerSettings.register(flags)
	cli.Group(flags, topicTraining, "steps", "epochs", "batch", "lr")
	s.codecSettings.register(flags)
	s.StrategySettings.register(flags)
	flags.StringVar(&s.Every, "every", EveryAuto, "steps between two exchanges: a number, auto, partial=N (what the link takes in N steps) or drift=C (once the model moved C); diloco, local-sgd: between updates")
	flags.IntVar(&s.Burst, "burst", 0, "adpsgd: make this many exchanges one after the other, as many times more seldom; log2 of the number of peers makes all models nearly alike")
	s.outerSettings.register(flags)
	flags.StringVar(&s.Budget, "budget", "", "most that the exchanges which this peer initiates may move, such as 2GB/h (default: no bound)")
	flags.BoolVar(&s.Consensus, "consensus", false, "talk more often early and late in the run, as the distance between models asks for")
}

func (s trainSettings) faults() []error {
	var faults cli.Faults
	faults.Add(cli.OneOf("codec", s.Codec, append(quant.Names(), quant.Auto)))
	faults.Add(s.optimizerSettings.faults()...)
	faults.Add(s.StrategySettings.faults()...)
	faults.Add(s.combinations()...)
	pace, err := s.Pace()
	faults.Add(err)
	if err == nil {
		faults.Add(s.outerSettings.faults(s.Strategy, pace.Every)...)
	}
	_, err = s.CodecPolicy()
	faults.Add(err)
	if s.Policy == "" || s.follows() {
		err = quant.Policy{Quantized: s.Quantized}.Validate(nil)
		faults.If(err != nil, quantizedFlag, "%q: want 0 to 100 percent, or points of the run in order, as in 0@0,100@0.3", s.Quantized)
	}
	faults.If(!(s.Epochs >= 0 && s.Epochs <= maxEpochs), "epochs", "%v: want a positive number, up to %d", s.Epochs, int(maxEpochs))
	if s.Steps > 0 && s.Epochs != 0 {
		faults.Add(errors.New("--steps and --epochs both say how much work there is: give one of them"))
	}
	faults.If(s.Burst < 0 || s.Burst > maxBurst, "burst", "%d: want 0 to %d", s.Burst, maxBurst)
	faults.If(s.Batch < 1, "batch", "%d: want at least 1", s.Batch)
	faults.Add(cli.Within(accumulateFlag, s.Accumulate, 1, maxAccumulate))
	faults.If(s.Accumulate > 1 && s.Divides(), accumulateFlag, "the pictures of a step are divided among the peers: with --%s or --%s leave it out", GlobalBatchFlag, balanceFlag)
	faults.If(s.Accumulate > 1 && s.Factors, accumulateFlag, "factors are those of one batch: with --%s leave it out", factorsFlag)
	return faults
}

// NewOptimizer makes the optimizer that --optimizer names, for a model of this layout, with the outer one around it.
func (s trainSettings) NewOptimizer(layout *tensor.Layout) optim.Optimizer {
	inner := s.optimizerSettings.NewOptimizer(layout)
	if s.Strategy != StrategyADPSGD {
		return inner
	}
	pace, _ := s.Pace() // a fault is told before
	return s.around(inner, pace.Every*max(s.Burst, 1))
}

// Outer says how local steps become one of the flock's model, with the strategies that have any.
func (s trainSettings) Outer() baseline.Outer {
	pace, _ := s.Pace() // a fault is told before
	return s.update(s.Strategy, cmp.Or(pace.Every, defaultLocalSteps))
}

// Pictures are the pictures in a step of one peer.
func (s trainSettings) Pictures() int { return s.Batch * max(s.Accumulate, 1) }

// Overlaps tells whether peers send a part of a gradient while they compute the rest. One of several batches is whole
// only with the last.
func (s trainSettings) Overlaps() bool { return s.Accumulate <= 1 && s.StrategySettings.Overlaps() }

// Drawn is the size of the batches that are drawn from the data.
func (s trainSettings) Drawn() int {
	if s.Divides() {
		return 1
	}
	return s.Batch
}

// combinations are the errors in settings that do not go with the strategy.
func (s trainSettings) combinations() []error {
	var faults cli.Faults
	if !s.Paced() {
		faults.If(s.Every != EveryAuto && s.Every != "1" && !s.Local(), "every", "%q: with --strategy %s peers talk in every step: leave it out, or use --strategy %s", s.Every, s.Strategy, StrategyADPSGD)
		faults.If(s.Local() && strings.Contains(s.Every, "="), "every", "%q: with --strategy %s all peers talk after the same number of steps: give one", s.Every, s.Strategy)
		faults.If(s.Budget != "", "budget", "is for %s: with --strategy %s peers talk in step; a coarser --codec makes that cheaper", StrategyADPSGD, s.Strategy)
		faults.If(s.Burst != 0, "burst", "is for %s: with --strategy %s peers talk in step", StrategyADPSGD, s.Strategy)
		faults.If(s.Consensus, "consensus", "is for %s: with --strategy %s peers talk in step", StrategyADPSGD, s.Strategy)
	}
	if pace, err := s.Pace(); err == nil {
		faults.If(s.Balance && s.Strategy == StrategyADPSGD && pace.Every == 0, balanceFlag, "scales a number of steps: give one with --every, as in --every 8 (with auto, each peer finds its own)")
	}
	policy, err := s.CodecPolicy()
	faults.If(err == nil && s.gradients() && policy.Changes(), quantizedFlag, "%q: with --strategy %s all must code the same at every moment: give one percentage", policy.Quantized, s.Strategy)
	if err == nil && s.gradients() && !oneWay(policy) {
		flag := codecFlag
		if s.Policy != "" && !s.follows() {
			flag = policyFlag
		}
		faults.If(true, flag, "a lattice code needs a model near to it at the other end, and --strategy %s sends gradients: want raw, bf16, fp16 or int8", s.Strategy)
	}
	return faults
}

// oneWay tells whether a policy has no lattice codec: those need a near model at the other end.
func oneWay(policy quant.Policy) bool {
	names := []string{policy.Codec, policy.Exact}
	for _, rule := range policy.Rules {
		names = append(names, rule.Codec)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		codec, err := quant.ByName(name)
		return name == quant.Auto || err == nil && codec.Lattice()
	})
}

// Pace is the pace of exchanges that --every, --budget and --consensus ask for.
func (s trainSettings) Pace() (averaging.Pace, error) {
	pace := averaging.Pace{Consensus: s.Consensus, Burst: s.Burst, BySpeed: s.Balance && s.Strategy == StrategyADPSGD}
	var faults cli.Faults
	steps, partial := strings.CutPrefix(s.Every, everyPartial)
	pace.Partial = partial
	switch drift, counts := strings.CutPrefix(s.Every, everyDrift); {
	case counts:
		c, err := strconv.ParseFloat(drift, 64)
		faults.If(err != nil || !(c > 0 && c <= maxDrift), "every", "%q: want drift=C with C above 0, in lengths of a step, such as drift=4", s.Every)
		pace.Drift = c
	case steps != EveryAuto:
		every, err := strconv.Atoi(steps)
		faults.If(err != nil || every < 1, "every", "%q: want auto, a number of steps, at least 1, partial=auto, partial=N, or drift=C", s.Every)
		pace.Every = every
	}
	if s.Budget != "" {
		var err error
		pace.BytesPerHour, err = parseBudget(s.Budget)
		faults.Add(err)
	}
	return pace, errors.Join(faults...)
}

// everyPartial begins a value of --every whose exchanges take no longer than the steps between them.
const everyPartial = "partial="

// everyDrift begins a value of --every that measures how far the model has moved.
const everyDrift = "drift="

const accumulateFlag = "accumulate"

// Bounds of --accumulate and --epochs.
const maxAccumulate, maxEpochs = 1 << 16, 1e9

// maxBurst bounds --burst, as averaging.Pace does: as many exchanges as mix any flock.
const maxBurst = 32

// maxDrift bounds C in drift=C: with a larger one, no run would ever exchange.
const maxDrift = 1e6

// parseBudget reads a number of bytes per hour, such as 2GB/h or 500MB/h.
func parseBudget(text string) (bytesPerHour float64, err error) {
	amount, timed := strings.CutSuffix(text, "/h")
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		number, found := strings.CutSuffix(amount, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if timed && err == nil && n > 0 && n < 1e9 {
			return n * unit.bytes, nil
		}
	}
	return 0, cli.Faultf("budget", "%q: want an amount an hour, such as 2GB/h or 500MB/h", text)
}
