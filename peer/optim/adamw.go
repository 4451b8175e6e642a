package optim

import (
	"cmp"

	"github.com/seed-97356399/murmuration/tensor"
)

// Defaults of AdamW.
const (
	DefaultBeta1   = 0.9
	DefaultBeta2   = 0.999
	DefaultEpsilon = 1e-8
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter, 2019), with
// bias-corrected moments. The zero value has the usual constants and no decay.
type AdamW struct {
	// Beta1 and Beta2 are the decay rates of the two moments, 0 to below 1, Epsilon what
	// keeps the quotient finite. Default: DefaultBeta1, DefaultBeta2, DefaultEpsilon.
	Beta1, Beta2, Epsilon float64
	// WeightDecay is the share of a parameter, times the rate, by which a step
	// shrinks it.
	WeightDecay float64
	// Decayed are the ranges that WeightDecay is for, Select(layout, Weights) as a rule.
	// Default: all.
	Decayed Ranges
	// Clip bounds the norm of the gradient, all ranges together, before anything is made
	// of it, as torch.nn.utils.clip_grad_norm_ does. Default: no bound. Where gradients are
	// averaged (baseline.AllReduce) it bounds the mean's; Local ranges that are trained are
	// part of it, so that there they would have peers scale what they share differently.
	Clip float64

	memory
}

// Delta implements Optimizer.
func (o *AdamW) Delta(grad, x tensor.Vector, rate float64) {
	o.begin(2, len(grad))
	o.steps++
	clip(grad, o.Clip)
	for p := range o.Decayed.over(len(grad), o.WeightDecay) {
		o.rates(rate, p.decay, o.steps).Delta(p.in(grad), p.in(o.vectors[0]), p.in(o.vectors[1]), p.in(grad), p.in(x))
	}
}

func (o *AdamW) rates(rate, decay float64, step uint64) tensor.AdamWRates {
	return tensor.AdamWRates{
		Rate: rate, Beta1: cmp.Or(o.Beta1, DefaultBeta1), Beta2: cmp.Or(o.Beta2, DefaultBeta2),
		Epsilon: cmp.Or(o.Epsilon, DefaultEpsilon), Decay: decay, Step: step,
	}
}

// leastEpsilon is the least that float32 has with all its digits.
const leastEpsilon = 0x1p-126

// Validate implements Validator.
func (o *AdamW) Validate(layout *tensor.Layout) error {
	var f faults
	f.share("Beta1", o.Beta1)
	f.share("Beta2", o.Beta2)
	if e := cmp.Or(o.Epsilon, DefaultEpsilon); !(e >= leastEpsilon && e <= 1) {
		f.add("Epsilon is %v: want %.2g to 1, or 0 for %v", o.Epsilon, leastEpsilon, DefaultEpsilon)
	}
	f.common(o.WeightDecay, o.Clip, o.Decayed.fault(layout))
	return f.joined()
}

const kindAdamW, vectorMean, vectorSquare = "adamw", "mean", "square"

// State implements Stateful.
func (o *AdamW) State() State { return o.state(kindAdamW, vectorMean, vectorSquare) }

// Restore implements Stateful.
func (o *AdamW) Restore(s State) error { return o.restore(s, kindAdamW, vectorMean, vectorSquare) }
