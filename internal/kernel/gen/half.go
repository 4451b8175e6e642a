package main

import (
	"github.com/mmcloughlin/avo/operand"
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

func fp16Finite(r *routine) { halvesBelow(r, halfPrecisionInfinity) }
