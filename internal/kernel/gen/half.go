package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	nearestEven = 0 // the rounding of a conversion to half precision

	halfPrecisionInfinity = 0x7c00
)

func fp16Encode(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, to := l.load("x"), l.at(l.stream("dst"))
		code := l.vector(halfSize)
		l.VCVTPS2PH(operand.U8(nearestEven), x, code)
		if l.single() {
			l.VPEXTRW(operand.U8(0), code, to)
		} else {
			l.put(code, to)
		}
	})
}

// fp16Values returns the lane's half-precision values as float32.
func (l lane) fp16Values() reg.VecVirtual {
	v := l.vector(floatSize)
	if from := l.at(l.stream("code")); l.single() {
		l.loadHalf(from, v)
		l.VCVTPH2PS(v, v)
	} else {
		l.VCVTPH2PS(from, v)
	}
	return v
}

func fp16Add(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.fp16Values(), l.load("dst")
		l.VADDPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func fp16Sub(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		x, dst := l.fp16Values(), l.load("dst")
		l.VSUBPS(x, dst, dst)
		l.store(dst, "dst")
	})
}

func fp16Finite(r *routine) { halvesBelow(r, halfPrecisionInfinity) }
