package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/collective"
)

// Outer says how DiLoCo makes one step of the flock of many local ones. The zero value has its
// authors' figures, but for Every.
type Outer struct {
	// Every is H, the number of local steps from one update to the next. Required.
	Every int
	// Rate and Momentum, which is Nesterov's, are those of the update. A rate of 1 without
	// momentum is local SGD (Stich, 2019): the models are averaged. Default: DefaultOuterRate;
	// no momentum.
	Rate, Momentum float64
}

// The authors' outer rate and momentum.
const (
	DefaultOuterRate     = 0.7
	DefaultOuterMomentum = 0.9
)

func (o Outer) validate() error {
	var faults []error
	if o.Every < 1 {
		faults = append(faults, fmt.Errorf("Every is %d: want at least 1 step", o.Every))
	}
	if !(o.Rate >= 0) || math.IsInf(o.Rate, 0) {
		faults = append(faults, fmt.Errorf("Rate is %v: want a positive number", o.Rate))
	}
	if !(o.Momentum >= 0 && o.Momentum < 1) {
		faults = append(faults, fmt.Errorf("Momentum is %v: want 0 to below 1", o.Momentum))
	}
	return errors.Join(faults...)
}

// NewDiLoCo makes an AllReduce of what many local steps came to, in the place of each step's
// gradient (Douillard et al., 2023): each trainer makes Outer.Every steps by its own optimizer
// from the flock's model, and the mean of the differences is the gradient of a step of the
// flock's model. Optimizers' states are not exchanged. Between two updates nobody hears of local
// steps; those of a member that dies, of a joiner until its first update, and of the end of a run
// that is no update are lost.
func NewDiLoCo(config Config, outer Outer) (*AllReduce, error) {
	if err := errors.Join(config.validate(), outer.validate()); err != nil {
		return nil, fmt.Errorf("DiLoCo machine: %w", err)
	}
	outer.Rate = cmp.Or(outer.Rate, DefaultOuterRate)
	return newAllReduce(config, collective.DiLoCo, collective.Local(outer)), nil
}
