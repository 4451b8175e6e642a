package settings

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
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
	flags.Float64Var(&s.OuterMomentum, outerMomentumFlag, 0, "momentum from one exchange to the next, 0 to below 1, in steps of --every (default none for adpsgd, which bears 0.5, and 0.8 with --burst; 0.9 for diloco)")
	flags.Float64Var(&s.OuterRate, outerRateFlag, 0, "what the steps from one exchange to the next are multiplied by (default 1 for adpsgd, 0.7 for diloco)")
}

func (s outerSettings) given() bool { return s.OuterMomentum != 0 || s.OuterRate != 0 }

// faults are the errors in these settings, for exchanges every so many steps, 0 if that is no number.
func (s outerSettings) faults(strategy string, every int) []error {
	var faults cli.Faults
	faults.If(!(s.OuterMomentum >= 0 && s.OuterMomentum < 1), outerMomentumFlag, "%v: want 0 to below 1", s.OuterMomentum)
	faults.If(!(s.OuterRate >= 0 && s.OuterRate <= maxOuterRate), outerRateFlag, "%v: want 0, the default, to %v", s.OuterRate, maxOuterRate)
	switch {
	case len(faults) > 0, !s.given() || strategy == strategyDiLoCo:
	case strategy != StrategyADPSGD:
		faults.Add(cli.Faultf(outerMomentumFlag, "and --%s are for %s and %s: with --strategy %s leave them out", outerRateFlag, StrategyADPSGD, strategyDiLoCo, strategy))
	case every == 0:
		faults.Add(cli.Faultf(outerMomentumFlag, "and --%s count in steps from one exchange to the next: give a number of them, as in --every 64", outerRateFlag))
	}
	return faults
}

// around puts outer momentum around an optimizer of adpsgd.
func (s outerSettings) around(inner optim.Optimizer, every int) optim.Optimizer {
	if !s.given() {
		return inner
	}
	return &optim.Outer{Inner: inner, Every: every, Rate: s.OuterRate, Momentum: s.OuterMomentum}
}

// update says how so many local steps become one of the flock's model.
func (s outerSettings) update(strategy string, every int) baseline.Outer {
	if strategy == strategyLocalSGD {
		return baseline.Outer{Every: every, Rate: 1}
	}
	return baseline.Outer{
		Every: every, Rate: cmp.Or(s.OuterRate, baseline.DefaultOuterRate),
		Momentum: cmp.Or(s.OuterMomentum, baseline.DefaultOuterMomentum),
	}
}
