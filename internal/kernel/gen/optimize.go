package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// signWord flips the sign of a float32, and oneWord is 1.
const (
	signWord = 0x80000000
	oneWord  = 0x3f800000
	sizeWord = signWord - 1 // a float32 without its sign
)

// leastState is that of package kernel.
const leastState = 0x1p-100

// stored emits the store of what an optimizer remembers, with values below leastState as 0.
func (l lane) stored(v reg.VecVirtual, name string) {
	size := l.vector(floatSize)
	l.VMOVAPS(v, size)
	l.and(l.word(sizeWord), size)
	if v.Size() == widthZ {
		some := l.K()
		l.VCMPPS(operand.U8(notLess), l.constant(leastState), size, some)
		l.VMOVAPS_Z(v, some, v)
	} else {
		l.VCMPPS(operand.U8(notLess), l.constant(leastState), size, size)
		l.VPAND(size, v, v)
	}
	l.store(v, name)
}

// coefficient is a field of argument c, in all places of a register.
func coefficient(r *routine, field string) reg.VecVirtual { return r.argument("c", field) }

// descent is the negative learning rate.
func descent(r *routine) reg.VecVirtual {
	rate, sign := coefficient(r, "Rate"), r.bits(signWord)
	lane{routine: r}.xor(sign, rate)
	return rate
}

func momentumStep(r *routine) {
	descent, momentum, decay := descent(r), coefficient(r, "Momentum"), coefficient(r, "Decay")
	r.each("delta", r.floats(), unroll, func(l lane) {
		velocity, _ := l.velocityOf(momentum, decay)
		l.store(l.times(descent, velocity), "delta")
	})
}

func nesterovStep(r *routine) {
	descent, momentum, decay := descent(r), coefficient(r, "Momentum"), coefficient(r, "Decay")
	r.each("delta", r.floats(), unroll, func(l lane) {
		velocity, grad := l.velocityOf(momentum, decay)
		ahead := l.times(momentum, velocity)
		l.VADDPS(ahead, grad, grad)
		l.store(l.times(descent, grad), "delta")
	})
}

func adamWStep(r *routine) {
	descent, decay, epsilon := descent(r), coefficient(r, "Decay"), coefficient(r, "Epsilon")
	beta1, rest1 := coefficient(r, "Beta1"), coefficient(r, "OneMinus1")
	beta2, rest2 := coefficient(r, "Beta2"), coefficient(r, "OneMinus2")
	correction1, correction2 := coefficient(r, "Correction1"), coefficient(r, "Correction2")
	r.each("delta", r.floats(), 2, func(l lane) {
		grad := l.load("grad")
		mean := l.times(beta1, l.load("mean"))
		l.VADDPS(l.times(rest1, grad), mean, mean)
		l.stored(mean, "mean")

		square := l.times(beta2, l.load("square"))
		l.VMULPS(grad, grad, grad)
		l.VADDPS(l.times(rest2, grad), square, square)
		l.stored(square, "square")

		l.VMULPS(l.see(correction2, floatSize), square, square)
		l.VSQRTPS(square, square)
		l.VADDPS(l.see(epsilon, floatSize), square, square)
		l.VMULPS(l.see(correction1, floatSize), mean, mean)
		l.VDIVPS(square, mean, mean)
		l.VADDPS(l.times(decay, l.load("x")), mean, mean)
		l.store(l.times(descent, mean), "delta")
	})
}

func lionStep(r *routine) {
	descent, decay := descent(r), coefficient(r, "Decay")
	beta1, rest1 := coefficient(r, "Beta1"), coefficient(r, "OneMinus1")
	beta2, rest2 := coefficient(r, "Beta2"), coefficient(r, "OneMinus2")
	sign, one, zero := r.bits(signWord), r.bits(oneWord), r.zero()
	r.each("delta", r.floats(), unroll, func(l lane) {
		grad, mean := l.load("grad"), l.load("mean")
		blend := l.times(beta1, mean)
		l.VADDPS(l.times(rest1, grad), blend, blend)
		mean = l.times(beta2, mean)
		l.VADDPS(l.times(rest2, grad), mean, mean)
		l.stored(mean, "mean")

		direction := l.signs(blend, sign, one, zero)
		l.VADDPS(l.times(decay, l.load("x")), direction, direction)
		l.store(l.times(descent, direction), "delta")
	})
}
