package main

import (
	"github.com/mmcloughlin/avo/reg"
)

// signWord flips the sign of a float32.
const signWord = 0x80000000

// coefficient is a field of argument c, in all places of a register.
func (r *routine) coefficient(field string) reg.VecVirtual { return r.argument("c", field) }

// descent is the negative learning rate.
func (r *routine) descent() reg.VecVirtual {
	rate, sign := r.coefficient("Rate"), r.bits(signWord)
	lane{routine: r}.xor(sign, rate)
	return rate
}

// times returns a*v without changing v.
func (l lane) times(a, v reg.VecVirtual) reg.VecVirtual {
	product := l.vector(floatSize)
	l.VMULPS(l.see(a, floatSize), v, product)
	return product
}

// velocityOf emits what both kinds of momentum share: it stores the new velocity
// and returns it with the decayed gradient.
func (l lane) velocityOf(momentum, decay reg.VecVirtual) (velocity, grad reg.VecVirtual) {
	grad = l.load("grad")
	pull := l.times(decay, l.load("x"))
	l.VADDPS(pull, grad, grad)
	velocity = l.times(momentum, l.load("velocity"))
	l.VADDPS(grad, velocity, velocity)
	l.store(velocity, "velocity")
	return velocity, grad
}

func momentumStep(r *routine) {
	descent, momentum, decay := r.descent(), r.coefficient("Momentum"), r.coefficient("Decay")
	r.each("delta", r.floats(), unroll, func(l lane) {
		velocity, _ := l.velocityOf(momentum, decay)
		l.store(l.times(descent, velocity), "delta")
	})
}

func nesterovStep(r *routine) {
	descent, momentum, decay := r.descent(), r.coefficient("Momentum"), r.coefficient("Decay")
	r.each("delta", r.floats(), unroll, func(l lane) {
		velocity, grad := l.velocityOf(momentum, decay)
		ahead := l.times(momentum, velocity)
		l.VADDPS(ahead, grad, grad)
		l.store(l.times(descent, grad), "delta")
	})
}

func adamWStep(r *routine) {
	descent, decay, epsilon := r.descent(), r.coefficient("Decay"), r.coefficient("Epsilon")
	beta1, rest1 := r.coefficient("Beta1"), r.coefficient("OneMinus1")
	beta2, rest2 := r.coefficient("Beta2"), r.coefficient("OneMinus2")
	correction1, correction2 := r.coefficient("Correction1"), r.coefficient("Correction2")
	r.each("delta", r.floats(), 2, func(l lane) {
		grad := l.load("grad")
		mean := l.times(beta1, l.load("mean"))
		l.VADDPS(l.times(rest1, grad), mean, mean)
		l.store(mean, "mean")

		square := l.times(beta2, l.load("square"))
		l.VMULPS(grad, grad, grad)
		l.VADDPS(l.times(rest2, grad), square, square)
		l.store(square, "square")

		l.VMULPS(l.see(correction2, floatSize), square, square)
		l.VSQRTPS(square, square)
		l.VADDPS(l.see(epsilon, floatSize), square, square)
		l.VMULPS(l.see(correction1, floatSize), mean, mean)
		l.VDIVPS(square, mean, mean)
		l.VADDPS(l.times(decay, l.load("x")), mean, mean)
		l.store(l.times(descent, mean), "delta")
	})
}
