package settings

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// outerSettings are the momentum over many steps, and the rate at which they count.
type outerSettings struct {
	OuterMomentum float64
	OuterRate     float64
}

const (
	outerMomentumFlag = "outer-momentum"
	outerRateFlag     = "outer-rate"
)

func (s *outerSettings) register(flags *pflag.FlagSet) {
	flags.Float64Var(&s.OuterMomentum, outerMomentumFlag, 0, "adpsgd: every --every steps, carry on this share of the way that the model has come since the last time, 0 to below 1; 0.5 where --every is 32 or more")
	flags.Float64Var(&s.OuterRate, outerRateFlag, 0, "adpsgd: every --every steps, multiply what they came to by this (default 1)")
}

func (s outerSettings) outer() bool { return s.OuterMomentum != 0 || s.OuterRate != 0 }

func (s trainSettings) outerFaults() []error {
	var faults cli.Faults
	if !s.outer() {
		return nil
	}
	faults.If(!(s.OuterMomentum >= 0 && s.OuterMomentum < 1), outerMomentumFlag, "%v: want 0 to below 1", s.OuterMomentum)
	faults.If(!(s.OuterRate >= 0 && s.OuterRate <= maxOuterRate), outerRateFlag, "%v: want above 0, up to %v", s.OuterRate, maxOuterRate)
	if pace, err := s.Pace(); err == nil {
		faults.If(s.Strategy != StrategyADPSGD || pace.Every == 0, outerMomentumFlag, "and --%s count in steps between two exchanges: give --strategy %s a number of them, as in --every 64", outerRateFlag, StrategyADPSGD)
	}
	return faults
}

// maxOuterRate bounds --outer-rate: beyond it no model converges.
const maxOuterRate = 10

// NewOptimizer makes the optimizer that --optimizer names, for a model of this layout, with the outer one around it.
func (s trainSettings) NewOptimizer(layout *tensor.Layout) optim.Optimizer {
	inner := s.optimizerSettings.NewOptimizer(layout)
	pace, err := s.Pace()
	if !s.outer() || err != nil {
		return inner
	}
	return &optim.Outer{Inner: inner, Every: pace.Every, Rate: cmp.Or(s.OuterRate, 1), Momentum: s.OuterMomentum}
}
