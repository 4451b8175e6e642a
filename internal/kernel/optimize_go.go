package kernel

import "math"

// leastState is the least size of what an optimizer remembers; what is smaller is 0. Where there is no gradient any more, as in a unit
// that has died or of a word that is rare, it would decay to denormal numbers and stay there, with which processors are ten times slower.
const leastState = 0x1p-100

func state(v float32) float32 {
	if -leastState < v && v < leastState {
		return 0
	}
	return v
}

func momentumStepGo(delta, velocity, grad, x []float32, c Momentum) {
	n := len(delta)
	velocity, grad, x = velocity[:n], grad[:n], x[:n]
	for i := range delta {
		g := grad[i] + float32(c.Decay*x[i])
		v := state(float32(c.Momentum*velocity[i]) + g)
		velocity[i] = v
		delta[i] = -c.Rate * v
	}
}

func nesterovStepGo(delta, velocity, grad, x []float32, c Momentum) {
	n := len(delta)
	velocity, grad, x = velocity[:n], grad[:n], x[:n]
	for i := range delta {
		g := grad[i] + float32(c.Decay*x[i])
		v := state(float32(c.Momentum*velocity[i]) + g)
		velocity[i] = v
		delta[i] = -c.Rate * (g + float32(c.Momentum*v))
	}
}

func adamWStepGo(delta, mean, square, grad, x []float32, c AdamW) {
	n := len(delta)
	mean, square, grad, x = mean[:n], square[:n], grad[:n], x[:n]
	for i := range delta {
		g := grad[i]
		m := state(float32(c.Beta1*mean[i]) + float32(c.OneMinus1*g))
		s := state(float32(c.Beta2*square[i]) + float32(c.OneMinus2*float32(g*g)))
		mean[i], square[i] = m, s
		// The square root of a float32 in float64, rounded back, is the
		// correctly rounded float32 root.
		root := float32(math.Sqrt(float64(float32(s*c.Correction2)))) + c.Epsilon
		u := float32(m*c.Correction1) / root
		delta[i] = -c.Rate * (u + float32(c.Decay*x[i]))
	}
}

func lionStepGo(delta, mean, grad, x []float32, c Lion) {
	n := len(delta)
	mean, grad, x = mean[:n], grad[:n], x[:n]
	for i := range delta {
		g, m := grad[i], mean[i]
		blend := float32(c.Beta1*m) + float32(c.OneMinus1*g)
		mean[i] = state(float32(c.Beta2*m) + float32(c.OneMinus2*g))
		sign := blend - blend // 0, or NaN of what is not finite
		if blend != 0 {
			sign += float32(math.Copysign(1, float64(blend)))
		}
		delta[i] = -c.Rate * (sign + float32(c.Decay*x[i]))
	}
}
