package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// optimizer is an optimizer with its defaults.
type optimizer struct {
	name  string
	rate  float64 // default of --lr
	beta2 float64 // default of --beta2; 0 if the optimizer has none
	new   func(s optimizerSettings, layout *tensor.Layout, decayed optim.Ranges) optim.Optimizer
}

var optimizers = []optimizer{
	{"sgd", 0.1, 0, func(s optimizerSettings, _ *tensor.Layout, decayed optim.Ranges) optim.Optimizer {
		return &optim.SGD{WeightDecay: s.WeightDecay, Decayed: decayed, Clip: s.Clip}
	}},
	{momentumOptimizer, 0.03, 0, func(s optimizerSettings, _ *tensor.Layout, decayed optim.Ranges) optim.Optimizer {
		return &optim.SGD{Momentum: cmp.Or(s.Momentum, optim.DefaultMomentum), WeightDecay: s.WeightDecay, Decayed: decayed, Clip: s.Clip}
	}},
	{"adamw", 0.001, optim.DefaultBeta2, func(s optimizerSettings, _ *tensor.Layout, decayed optim.Ranges) optim.Optimizer {
		return &optim.AdamW{Beta2: s.Beta2, WeightDecay: s.WeightDecay, Decayed: decayed, Clip: s.Clip}
	}},
	{"lion", 0.0003, optim.DefaultLionBeta2, func(s optimizerSettings, _ *tensor.Layout, decayed optim.Ranges) optim.Optimizer {
		return &optim.Lion{Beta2: s.Beta2, WeightDecay: s.WeightDecay, Decayed: decayed, Clip: s.Clip}
	}},
	{"muon", 0.003, optim.DefaultBeta2, func(s optimizerSettings, layout *tensor.Layout, decayed optim.Ranges) optim.Optimizer {
		return &optim.Muon{Layout: layout, AdamW: optim.AdamW{Beta2: s.Beta2, WeightDecay: s.WeightDecay, Decayed: decayed, Clip: s.Clip}}
	}},
}

func optimizerNames() (names []string) {
	for _, o := range optimizers {
		names = append(names, o.name)
	}
	return names
}

// optimizerSettings choose the optimizer and the course of the learning rate.
type optimizerSettings struct {
	LR          float64
	Optimizer   string
	Schedule    string
	Warmup      float64
	LRFloor     float64
	WeightDecay float64
	Clip        float64
	Beta2       float64
	Momentum    float64
}

func (s *optimizerSettings) register(flags *pflag.FlagSet) {
	var rates, betas []string
	for _, o := range optimizers {
		rates = append(rates, fmt.Sprintf("%v for %s", o.rate, o.name))
		if o.beta2 > 0 {
			betas = append(betas, fmt.Sprintf("%v for %s", o.beta2, o.name))
		}
	}
	flags.Float64Var(&s.LR, "lr", 0, "learning rate (default "+strings.Join(rates, ", ")+")")
	flags.StringVar(&s.Optimizer, "optimizer", momentumOptimizer, "optimizer: "+cli.List(optimizerNames()))
	flags.StringVar(&s.Schedule, "schedule", ScheduleCosine, "course of the learning rate: "+cli.List(Schedules()))
	flags.Float64Var(&s.Warmup, "warmup", defaultWarmup, "share of the work over which the learning rate rises, 0 to 1")
	flags.Float64Var(&s.LRFloor, "lr-floor", 0, "share of the learning rate, 0 to 1, at which cosine ends and step stays")
	flags.Float64Var(&s.WeightDecay, "weight-decay", 0, "weight decay of weights, not of biases and norms")
	flags.Float64Var(&s.Clip, "clip", 0, "most that the norm of a gradient may be: a longer one is scaled to it (default: no bound)")
	flags.Float64Var(&s.Beta2, "beta2", 0, "adamw and muon (of squares), lion: share of the mean kept from step to step, 0 to below 1 (default "+strings.Join(betas, ", ")+")")
	flags.Float64Var(&s.Momentum, momentumFlag, 0, fmt.Sprintf("momentum: share of the direction kept from step to step, 0 to below 1 (default %v)", optim.DefaultMomentum))
}

const (
	momentumFlag      = "momentum"
	momentumOptimizer = "momentum"
)

func (s optimizerSettings) faults() []error {
	var faults cli.Faults
	optimizerFault := cli.OneOf("optimizer", s.Optimizer, optimizerNames())
	faults.Add(optimizerFault, cli.OneOf("schedule", s.Schedule, Schedules()))
	for _, amount := range []struct {
		flag  string
		value float64
	}{{"lr", s.LR}, {"weight-decay", s.WeightDecay}, {"clip", s.Clip}} {
		faults.If(!(amount.value >= 0) || math.IsInf(amount.value, 0), amount.flag, "%v: want a positive number", amount.value)
	}
	faults.If(!(s.Warmup >= 0 && s.Warmup <= 1), "warmup", "%v: want a share of the work, 0 to 1", s.Warmup)
	faults.If(!(s.LRFloor >= 0 && s.LRFloor <= 1), "lr-floor", "%v: want a share of the learning rate, 0 to 1", s.LRFloor)
	faults.If(!(s.Beta2 >= 0 && s.Beta2 < 1), "beta2", "%v: want 0 to below 1", s.Beta2)
	faults.If(optimizerFault == nil && s.Beta2 != 0 && s.optimizer().beta2 == 0, "beta2", "is for adamw, lion and muon, not for %s", s.Optimizer)
	faults.If(!(s.Momentum >= 0 && s.Momentum < 1), momentumFlag, "%v: want 0 to below 1", s.Momentum)
	faults.If(optimizerFault == nil && s.Momentum != 0 && s.Optimizer != momentumOptimizer, momentumFlag, "is for --optimizer momentum, not for %s", s.Optimizer)
	return faults
}

// Rate is the learning rate, after warmup and before decay.
func (s optimizerSettings) Rate() float64 { return cmp.Or(s.LR, s.optimizer().rate) }

// OtherBeta2 is --beta2 if it differs from the default of the optimizer, else 0.
func (s optimizerSettings) OtherBeta2() float64 {
	if s.Beta2 == s.optimizer().beta2 {
		return 0
	}
	return s.Beta2
}

// OtherMomentum is --momentum if it differs from the default, else 0.
func (s optimizerSettings) OtherMomentum() float64 {
	if s.Momentum == optim.DefaultMomentum {
		return 0
	}
	return s.Momentum
}

// NewOptimizer makes the optimizer that --optimizer names, for a model of this layout.
func (s optimizerSettings) NewOptimizer(layout *tensor.Layout) optim.Optimizer {
	return s.optimizer().new(s, layout, optim.Select(layout, optim.Weights))
}

// optimizer is the one that --optimizer names. Before faults has checked the name, there may be none: the run
// that is joined may use an optimizer of another release.
func (s optimizerSettings) optimizer() (found optimizer) {
	if i := slices.Index(optimizerNames(), s.Optimizer); i >= 0 {
		found = optimizers[i]
	}
	return found
}

// ShapeOf is the course of the learning rate that a name stands for.
func ShapeOf(name string) (optim.Shape, []float64) {
	switch name {
	case scheduleConstant:
		return optim.Constant, nil
	case scheduleStep:
		return optim.Stepped, []float64{0.5, 0.75}
	}
	return optim.Cosine, nil
}

// Course is the course of the learning rate.
func (s optimizerSettings) Course() optim.Schedule {
	course := optim.Schedule{Rate: s.Rate(), Warmup: s.Warmup, Floor: s.LRFloor}
	course.Shape, course.At = ShapeOf(s.Schedule)
	return course
}
