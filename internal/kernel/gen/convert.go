package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	upperHalf = 16         // bits that a bfloat16 is shifted by in its float32
	unordered = 3          // the comparison that is true for NaN
	quietBit  = 0x00400000 // of a float32
)

func bf16Decode(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) { l.store(l.bf16Values(), "dst") })
}

func fp16Decode(r *routine) {
	r.each("dst", r.floats(), unroll, func(l lane) {
		v := l.vector(floatSize)
		if l.single() {
			l.loadHalf(l.at(l.stream("code")), v)
			l.VCVTPH2PS(v, v)
		} else {
			l.VCVTPH2PS(l.at(l.stream("code")), v)
		}
		l.store(v, "dst")
	})
}

// bf16Rounding holds the constants of rounding to bfloat16.
type bf16Rounding struct{ one, half, quiet reg.VecVirtual }

// round returns, in the low half of each 32 bits, the bfloat16 of the lane's
// values in x, as bf16 in convert_go.go does.
func (c bf16Rounding) round(l lane, x reg.VecVirtual) reg.VecVirtual {
	v := l.vector(floatSize)
	l.VPSRLD(operand.U8(upperHalf), x, v)
	l.and(l.see(c.one, floatSize), v)
	l.VPADDD(x, v, v)
	l.VPADDD(l.see(c.half, floatSize), v, v)
	if quiet := l.see(c.quiet, floatSize); v.Size() == widthZ {
		nan := l.K()
		l.VCMPPS(operand.U8(unordered), x, x, nan)
		l.VPORD(quiet, x, nan, v)
	} else {
		nan := l.vector(floatSize)
		l.VCMPPS(operand.U8(unordered), x, x, nan)
		l.VPOR(quiet, x, x)
		l.VBLENDVPS(nan, x, v, v)
	}
	l.VPSRLD(operand.U8(upperHalf), v, v)
	return v
}

func bf16Encode(r *routine) {
	c := bf16Rounding{one: r.bits(1), half: r.bits(0x7fff), quiet: r.bits(quietBit)}
	if r.width == widthZ {
		r.each("dst", r.floats(), unroll, func(l lane) {
			v := c.round(l, l.load("x"))
			if to := l.at(l.stream("dst")); l.single() {
				l.VPEXTRW(operand.U8(0), v, to)
			} else {
				code := l.vector(halfSize)
				l.VPMOVDW(v, code)
				l.put(code, to)
			}
		})
		return
	}
	r.each("dst", 2*r.floats(), unroll/2, func(l lane) {
		to := l.at(l.stream("dst"))
		if l.single() {
			l.VPEXTRW(operand.U8(0), c.round(l, l.load("x")), to)
			return
		}
		low, high := l, l
		low.values, high.values = l.values/2, l.values/2
		high.skip += low.values
		v, w := c.round(low, low.load("x")), c.round(high, high.load("x"))
		// Packing works on each 128 bits for itself, so that the quarters are
		// low, high, low, high.
		l.VPACKUSDW(w, v, v)
		l.VPERMQ(operand.U8(0b11_01_10_00), v, v)
		l.put(v, to)
	})
}
