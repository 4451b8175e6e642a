package tensor

import "github.com/seed-97356399/murmuration/internal/kernel"

// MomentumRates are the rates of one step of stochastic gradient descent. The
// zero value changes nothing; Momentum and Decay may stay zero.
type MomentumRates struct {
	Rate     float64 // learning rate of this step, > 0
	Momentum float64 // share of the velocity kept from step to step, in [0, 1)
	Nesterov bool    // look ahead along the velocity (Sutskever et al. 2013)
	Decay    float64 // weight decay, added to the gradient as Decay*x
}

// Delta takes one step of gradient descent with heavy-ball momentum (Polyak 1964):
//
//	g = grad + Decay*x
//	velocity = Momentum*velocity + g
//	delta = -Rate * velocity                  without Nesterov
//	delta = -Rate * (g + Momentum*velocity)   with it
//
// The change to the parameters goes into delta, for the caller to add; delta
// may be grad. The velocity starts as zeros and belongs to the optimizer.
func (h MomentumRates) Delta(delta, velocity, grad, x Vector) {
	sameLength("MomentumRates", len(delta), len(velocity))
	sameLength("MomentumRates", len(delta), len(grad))
	sameLength("MomentumRates", len(delta), len(x))
	c := kernel.Momentum{
		Rate:     float32(h.Rate),
		Momentum: float32(h.Momentum),
		Decay:    float32(h.Decay),
	}
	if h.Nesterov {
		kernel.NesterovStep(delta, velocity, grad, x, c)
		return
	}
	kernel.MomentumStep(delta, velocity, grad, x, c)
}

// AdamWRates are the rates of one step of AdamW. Usual values are Beta1 0.9,
// Beta2 0.999, Epsilon 1e-8; none is assumed.
type AdamWRates struct {
	Rate    float64 // learning rate of this step, > 0
	Beta1   float64 // share of the mean of gradients kept, in [0, 1)
	Beta2   float64 // share of the mean of their squares kept, in [0, 1)
	Epsilon float64 // floor of the denominator, > 0 and at least 1e-38
	Decay   float64 // weight decay, decoupled: the step includes -Rate*Decay*x
	Step    uint64  // number of this step, from 1; 0 counts as 1
}

// Delta takes one step of Adam with decoupled weight decay (Loshchilov and Hutter
// 2019):
//
//	mean = Beta1*mean + (1-Beta1)*grad
//	square = Beta2*square + (1-Beta2)*grad²
//	m = mean / (1-Beta1^Step)
//	s = square / (1-Beta2^Step)
//	delta = -Rate * (m/(√s+Epsilon) + Decay*x)
//
// The change to the parameters goes into delta, for the caller to add; delta
// may be grad. Both moments start as zeros and belong to the optimizer.
func (h AdamWRates) Delta(delta, mean, square, grad, x Vector) {
	sameLength("AdamWRates", len(delta), len(mean))
	sameLength("AdamWRates", len(delta), len(square))
	sameLength("AdamWRates", len(delta), len(grad))
	sameLength("AdamWRates", len(delta), len(x))
	step := max(h.Step, 1)
	kernel.AdamWStep(delta, mean, square, grad, x, kernel.AdamW{
		Rate:        float32(h.Rate),
		Beta1:       float32(h.Beta1),
		Beta2:       float32(h.Beta2),
		OneMinus1:   float32(1 - h.Beta1),
		OneMinus2:   float32(1 - h.Beta2),
		Correction1: float32(1 / (1 - power(h.Beta1, step))),
		Correction2: float32(1 / (1 - power(h.Beta2, step))),
		Epsilon:     float32(h.Epsilon),
		Decay:       float32(h.Decay),
	})
}

// LionRates are the rates of one step of Lion. Usual values are Beta1 0.9 and Beta2
// 0.99; none is assumed.
type LionRates struct {
	Rate  float64 // learning rate of this step, > 0: about a tenth of AdamW's
	Beta1 float64 // share of the mean of gradients in the direction of the step, in [0, 1)
	Beta2 float64 // share of the mean of gradients kept, in [0, 1)
	Decay float64 // weight decay, decoupled: the step includes -Rate*Decay*x
}

// Delta takes one step of Lion with decoupled weight decay (Chen et al. 2023):
//
//	delta = -Rate * (sign(Beta1*mean + (1-Beta1)*grad) + Decay*x)
//	mean = Beta2*mean + (1-Beta2)*grad
//
// The sign of 0 is 0. Where the gradient is not finite, delta is not either. The change to the parameters goes into
// delta, for the caller to add; delta may be grad. The mean starts as zeros and belongs to the optimizer.
func (h LionRates) Delta(delta, mean, grad, x Vector) {
	sameLength("LionRates", len(delta), len(mean))
	sameLength("LionRates", len(delta), len(grad))
	sameLength("LionRates", len(delta), len(x))
	kernel.LionStep(delta, mean, grad, x, kernel.Lion{
		Rate:      float32(h.Rate),
		Beta1:     float32(h.Beta1),
		OneMinus1: float32(1 - h.Beta1),
		Beta2:     float32(h.Beta2),
		OneMinus2: float32(1 - h.Beta2),
		Decay:     float32(h.Decay),
	})
}

// power returns base to the n-th by repeated squaring. Unlike math.Pow it uses only products, which compilers cannot
// fuse: so each CPU takes the same optimizer step.
func power(base float64, n uint64) float64 {
	result := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = float64(result * base)
		}
		base = float64(base * base)
	}
	return result
}
