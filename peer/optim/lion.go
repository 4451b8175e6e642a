package optim

import (
	"cmp"

	"github.com/seed-97356399/murmuration/tensor"
)

// DefaultLionBeta2 is that of Lion; its Beta1 is that of AdamW.
const DefaultLionBeta2 = 0.99

// Lion steps by the signs of a mean of gradients, with decoupled weight decay (Chen et
// al., 2023): it remembers half of what AdamW does. Each step changes every value by the
// rate, so that it wants a third to a tenth of AdamW's rate, and as many times its decay.
// The zero value has the usual constants and no decay.
type Lion struct {
	// Beta1 is the share of the mean in the direction of a step, Beta2 the share of it that
	// is kept, 0 to below 1. Default: DefaultBeta1, DefaultLionBeta2.
	Beta1, Beta2 float64
	// WeightDecay is the share of a parameter, times the rate, by which a step
	// shrinks it.
	WeightDecay float64
	// Decayed are the ranges that WeightDecay is for, Select(layout, Weights) as a rule.
	// Default: all.
	Decayed Ranges
	// Clip bounds the norm of the gradient, before anything is made of it. Default: no
	// bound. See AdamW.
	Clip float64

	memory
}

// Delta implements Optimizer.
func (o *Lion) Delta(grad, x tensor.Vector, rate float64) {
	o.begin(1, len(grad))
	clip(grad, o.Clip)
	for p := range o.Decayed.over(len(grad), o.WeightDecay) {
		tensor.LionRates{
			Rate: rate, Beta1: cmp.Or(o.Beta1, DefaultBeta1), Beta2: cmp.Or(o.Beta2, DefaultLionBeta2), Decay: p.decay,
		}.Delta(p.in(grad), p.in(o.vectors[0]), p.in(grad), p.in(x))
	}
}

// Validate implements Validator.
func (o *Lion) Validate(layout *tensor.Layout) error {
	var f faults
	f.share("Beta1", o.Beta1)
	f.share("Beta2", o.Beta2)
	f.common(o.WeightDecay, o.Clip, o.Decayed.fault(layout))
	return f.joined()
}

const kindLion = "lion"

// State implements Stateful.
func (o *Lion) State() State { return o.state(kindLion, vectorMean) }

// Restore implements Stateful.
func (o *Lion) Restore(s State) error { return o.restore(s, kindLion, vectorMean) }
