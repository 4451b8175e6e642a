package settings

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// outerSettings are the momentum over many steps, and the rate at which they count; 0 is the
// strategy's own.
type outerSettings struct {
	OuterMomentum float64
	OuterRate     float64
}

const (
	outerMomentumFlag = "outer-momentum"
	outerRateFlag     = "outer-rate"
	// maxOuterRate bounds --outer-rate: beyond it no model converges.
	maxOuterRate = 10
	// defaultLocalSteps is --every auto where peers make so many steps of their own.
	defaultLocalSteps = 64
)

func (s *outerSettings) register(flags *pflag.FlagSet) {
	flags.Float64Var(&s.OuterMomentum, outerMomentumFlag, 0, "momentum from one exchange to the next, 0 to below 1, in steps of --every (default none for adpsgd, 0.9 for diloco)")
	flags.Float64Var(&s.OuterRate, outerRateFlag, 0, "what the steps from one exchange to the next are multiplied by (default 1 for adpsgd, 0.7 for diloco)")
}

func (s outerSettings) given() bool { return s.OuterMomentum != 0 || s.OuterRate != 0 }

func (s trainSettings) outerFaults() []error {
	var faults cli.Faults
	faults.If(!(s.OuterMomentum >= 0 && s.OuterMomentum < 1), outerMomentumFlag, "%v: want 0 to below 1", s.OuterMomentum)
	faults.If(!(s.OuterRate >= 0 && s.OuterRate <= maxOuterRate), outerRateFlag, "%v: want above 0, up to %v", s.OuterRate, maxOuterRate)
	pace, err := s.Pace()
	switch {
	case !s.outerSettings.given() || err != nil || s.Strategy == strategyDiLoCo:
	case s.Strategy != StrategyADPSGD:
		faults.Add(cli.Faultf(outerMomentumFlag, "and --%s are for %s and %s: with --strategy %s leave them out", outerRateFlag, StrategyADPSGD, strategyDiLoCo, s.Strategy))
	case pace.Every == 0:
		faults.Add(cli.Faultf(outerMomentumFlag, "and --%s count in steps from one exchange to the next: give a number of them, as in --every 64", outerRateFlag))
	}
	return faults
}

// NewOptimizer makes the optimizer that --optimizer names, for a model of this layout, with the outer one around it.
func (s trainSettings) NewOptimizer(layout *tensor.Layout) optim.Optimizer {
	inner := s.optimizerSettings.NewOptimizer(layout)
	if s.Strategy != StrategyADPSGD || !s.outerSettings.given() {
		return inner
	}
	pace, _ := s.Pace() // a fault is told before
	return &optim.Outer{Inner: inner, Every: pace.Every, Rate: s.OuterRate, Momentum: s.OuterMomentum}
}

// Outer says how local steps become one of the flock's model, with the strategies that have any.
func (s trainSettings) Outer() baseline.Outer {
	pace, _ := s.Pace() // a fault is told before
	outer := baseline.Outer{Every: cmp.Or(pace.Every, defaultLocalSteps), Rate: 1}
	if s.Strategy == strategyDiLoCo {
		outer.Rate = cmp.Or(s.OuterRate, baseline.DefaultOuterRate)
		outer.Momentum = cmp.Or(s.OuterMomentum, baseline.DefaultOuterMomentum)
	}
	return outer
}
