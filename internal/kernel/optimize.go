package kernel

// Momentum holds the coefficients of MomentumStep.
type Momentum struct {
	Rate     float32 // learning rate
	Momentum float32 // share of the velocity that is kept, beta
	Decay    float32 // weight decay, added to the gradient
}

// MomentumStep is stochastic gradient descent with heavy-ball momentum (Polyak
// 1964), writing the change to the parameters x into delta:
//
//	for i := range delta {
//		g := grad[i] + float32(c.Decay*x[i])
//		velocity[i] = float32(c.Momentum*velocity[i]) + g
//		delta[i] = -c.Rate * velocity[i]
//	}
//
// A velocity below 2^-100 is 0, as is what the other optimizers remember.
// delta may be grad.
func MomentumStep(delta, velocity, grad, x []float32, c Momentum) {
	n := len(delta)
	momentumStep(delta, velocity[:n], grad[:n], x[:n], c)
}

// NesterovStep is MomentumStep with the gradient's look-ahead in the form of
// Sutskever et al. (2013):
//
//	for i := range delta {
//		g := grad[i] + float32(c.Decay*x[i])
//		velocity[i] = float32(c.Momentum*velocity[i]) + g
//		delta[i] = -c.Rate * (g + float32(c.Momentum*velocity[i]))
//	}
//
// delta may be grad.
func NesterovStep(delta, velocity, grad, x []float32, c Momentum) {
	n := len(delta)
	nesterovStep(delta, velocity[:n], grad[:n], x[:n], c)
}

// AdamW holds the coefficients of AdamWStep for one step. The caller derives
// them in float64, since 1-Beta2 would lose five digits in float32.
type AdamW struct {
	Rate                 float32 // learning rate
	Beta1, Beta2         float32 // shares of the two moments that are kept
	OneMinus1, OneMinus2 float32 // 1-Beta1 and 1-Beta2
	Correction1          float32 // 1/(1-Beta1^t) at step t = 1, 2, ...
	Correction2          float32 // 1/(1-Beta2^t)
	Epsilon              float32 // floor of the denominator
	Decay                float32 // weight decay, times the learning rate
}

// AdamWStep is Adam with decoupled weight decay (Loshchilov and Hutter 2019),
// writing the change to the parameters x into delta:
//
//	for i := range delta {
//		g := grad[i]
//		mean[i] = float32(c.Beta1*mean[i]) + float32(c.OneMinus1*g)
//		square[i] = float32(c.Beta2*square[i]) + float32(c.OneMinus2*float32(g*g))
//		root := sqrt(square[i] * c.Correction2) + c.Epsilon
//		u := mean[i] * c.Correction1 / root
//		delta[i] = -c.Rate * (u + float32(c.Decay*x[i]))
//	}
//
// delta may be grad.
func AdamWStep(delta, mean, square, grad, x []float32, c AdamW) {
	n := len(delta)
	adamWStep(delta, mean[:n], square[:n], grad[:n], x[:n], c)
}

// Lion holds the coefficients of LionStep. The caller derives the differences from 1 in
// float64, as for AdamW.
type Lion struct {
	Rate             float32 // learning rate
	Beta1, OneMinus1 float32 // share of the mean in the direction of the step, and 1-Beta1
	Beta2, OneMinus2 float32 // share of the mean that is kept, and 1-Beta2
	Decay            float32 // weight decay, times the learning rate
}

// LionStep is Lion with decoupled weight decay (Chen et al. 2023), writing the change to the
// parameters x into delta:
//
//	for i := range delta {
//		blend := float32(c.Beta1*mean[i]) + float32(c.OneMinus1*grad[i])
//		mean[i] = float32(c.Beta2*mean[i]) + float32(c.OneMinus2*grad[i])
//		delta[i] = -c.Rate * (sign(blend) + float32(c.Decay*x[i]))
//	}
//
// The sign of 0 is 0, and that of what is not finite NaN, so that it shows in the step.
// delta may be grad.
func LionStep(delta, mean, grad, x []float32, c Lion) {
	n := len(delta)
	lionStep(delta, mean[:n], grad[:n], x[:n], c)
}
