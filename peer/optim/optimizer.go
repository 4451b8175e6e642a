// Package optim is the vocabulary of a step: optimizers, which turn a gradient into a
// step, and schedules, which tell the learning rate. Both are what peer.Config asks for.
package optim

import (
	"cmp"

	"github.com/seed-97356399/murmuration/tensor"
)

// Optimizer turns a gradient into a step. Its state stays with the peer and is
// never exchanged. Only the trainer calls it, so it need not be safe for
// concurrent use; one Optimizer must not be shared by two peers.
type Optimizer interface {
	// Delta overwrites grad, the gradient at parameters x, with the step to be
	// added to the parameters at learning rate rate. x is a snapshot and may be
	// scribbled over. All calls have vectors of the same length. Delta must not call the
	// peer: nobody takes a copy of the model while it runs.
	Delta(grad, x tensor.Vector, rate float64)
}

// Resetter is an Optimizer that can forget what it remembers from step to step, as every
// one that remembers anything should. A peer calls Reset when a step was not finite, and
// with baseline.AllReduce when a peer comes, or comes back, that has no such memory: all
// forget theirs then, and make the same steps. Without Reset their models stay apart, of
// which the log warns once.
type Resetter interface {
	Optimizer
	Reset()
}

// DefaultMomentum is that of the optimizer a peer uses if none is given.
const DefaultMomentum = 0.9

// SGD is stochastic gradient descent with heavy-ball momentum (Polyak, 1964).
// With velocity v: v ← Momentum·v + g + WeightDecay·x, step = −rate·v, or with
// Nesterov: step = −rate·(g + WeightDecay·x + Momentum·v). The zero value is plain
// gradient descent.
type SGD struct {
	Momentum    float64
	WeightDecay float64
	Nesterov    bool

	velocity tensor.Vector
}

// Delta implements Optimizer.
func (o *SGD) Delta(grad, x tensor.Vector, rate float64) {
	if len(o.velocity) != len(grad) {
		o.velocity = make(tensor.Vector, len(grad))
	}
	tensor.MomentumRates{
		Rate: rate, Momentum: o.Momentum, Decay: o.WeightDecay, Nesterov: o.Nesterov,
	}.Delta(grad, o.velocity, grad, x)
}

// Reset implements Resetter.
func (o *SGD) Reset() { clear(o.velocity) }

// Defaults of AdamW.
const (
	DefaultBeta1   = 0.9
	DefaultBeta2   = 0.999
	DefaultEpsilon = 1e-8
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter, 2019), with
// bias-corrected moments. The zero value has the usual constants and no decay.
type AdamW struct {
	// Beta1 and Beta2 are the decay rates of the two moments, Epsilon what keeps
	// the quotient finite. Default: DefaultBeta1, DefaultBeta2, DefaultEpsilon.
	Beta1, Beta2, Epsilon float64
	// WeightDecay is the share of a parameter, times the rate, by which a step
	// shrinks it.
	WeightDecay float64

	steps  uint64
	first  tensor.Vector
	second tensor.Vector
}

// Delta implements Optimizer.
func (o *AdamW) Delta(grad, x tensor.Vector, rate float64) {
	if len(o.first) != len(grad) {
		o.first, o.second, o.steps = make(tensor.Vector, len(grad)), make(tensor.Vector, len(grad)), 0
	}
	o.steps++
	tensor.AdamWRates{
		Rate: rate, Beta1: cmp.Or(o.Beta1, DefaultBeta1), Beta2: cmp.Or(o.Beta2, DefaultBeta2),
		Epsilon: cmp.Or(o.Epsilon, DefaultEpsilon), Decay: o.WeightDecay, Step: o.steps,
	}.Delta(grad, o.first, o.second, grad, x)
}

// Reset implements Resetter.
func (o *AdamW) Reset() {
	clear(o.first)
	clear(o.second)
	o.steps = 0
}
