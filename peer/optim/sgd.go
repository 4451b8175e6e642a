package optim

import "github.com/seed-97356399/murmuration/tensor"

// DefaultMomentum is that of the optimizer a peer uses if none is given.
const DefaultMomentum = 0.9

// SGD is stochastic gradient descent with heavy-ball momentum (Polyak, 1964).
// With velocity v: v ← Momentum·v + g + WeightDecay·x, step = −rate·v, or with
// Nesterov: step = −rate·(g + WeightDecay·x + Momentum·v). The zero value is plain
// gradient descent.
type SGD struct {
	Momentum float64 // 0 to below 1
	// WeightDecay is the share of a parameter that is added to its gradient.
	WeightDecay float64
	Nesterov    bool
	// Decayed are the ranges that WeightDecay is for, Select(layout, Weights) as a rule.
	// Default: all.
	Decayed Ranges
	// Clip bounds the norm of the gradient, before anything is made of it. Default: no
	// bound. See AdamW.
	Clip float64

	memory
}

// Delta implements Optimizer.
func (o *SGD) Delta(grad, x tensor.Vector, rate float64) {
	o.begin(1, len(grad))
	clip(grad, o.Clip)
	for p := range o.Decayed.over(len(grad), o.WeightDecay) {
		tensor.MomentumRates{
			Rate: rate, Momentum: o.Momentum, Decay: p.decay, Nesterov: o.Nesterov,
		}.Delta(p.in(grad), p.in(o.vectors[0]), p.in(grad), p.in(x))
	}
}

// Validate implements Validator.
func (o *SGD) Validate(layout *tensor.Layout) error {
	var f faults
	f.share("Momentum", o.Momentum)
	f.common(o.WeightDecay, o.Clip, o.Decayed.fault(layout))
	return f.joined()
}

const kindSGD, vectorVelocity = "sgd", "velocity"

// State implements Stateful.
func (o *SGD) State() State { return o.state(kindSGD, vectorVelocity) }

// Restore implements Stateful.
func (o *SGD) Restore(s State) error { return o.restore(s, kindSGD, vectorVelocity) }
