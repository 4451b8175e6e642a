package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func addWords(r *routine) operation {
	return func(a, b, c operand.Op) { r.VPADDD(a, b, c) }
}

// storeWord returns the lowest 32 bits of a sum from the routine.
func (d *reduction) storeWord() {
	d.fold()
	low, word := d.finish(), d.GP32()
	d.VMOVD(low, word)
	d.Store(word, d.ReturnIndex(0))
	d.close()
}

// stepsPer is how many values a register of steps has.
func stepsPer(r *routine) int { return r.width }

// quantized returns as many whole steps, from so many bytes of x on, and adds their
// squares.
func quantized(r *routine, bytes int, inverse, order reg.VecVirtual, squares *reduction) reg.VecVirtual {
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = r.register(r.width)
		r.VMULPS(r.offset("x", bytes+i*r.width), inverse, v[i])
		r.VCVTPS2DQ(v[i], v[i])
	}
	r.VPACKSSDW(v[1], v[0], v[0])
	r.VPACKSSDW(v[3], v[2], v[2])
	r.VPMADDWD(v[0], v[0], v[1])
	r.VPMADDWD(v[2], v[2], v[3])
	r.VPADDD(v[1], squares.acc[0], squares.acc[0])
	r.VPADDD(v[3], squares.acc[1], squares.acc[1])
	r.VPACKSSWB(v[2], v[0], v[0])
	r.VPERMD(v[0], order, v[0])
	return v[0]
}

func quantizeSteps(r *routine) {
	inverse, squares, order := r.argument("inverse"), r.reduce(addWords(r), floatSize, 2), r.order()
	r.count("turn", blockLen/stepsPer(r), func() {
		r.fetch("x", 0, stepsPer(r)*floatSize)
		r.fetchAt("steps", codeAhead, stepsPer(r))
		r.VMOVUPS(quantized(r, 0, inverse, order, squares), r.offset("steps", 0))
		r.ADDQ(operand.U32(stepsPer(r)*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(stepsPer(r)), r.stream("steps").next)
	})
	squares.storeWord()
}

// quantizeSteps4 packs the steps of both halves of a block right away.
func quantizeSteps4(r *routine) {
	const half = blockLen / 2
	inverse, squares, order := r.argument("inverse"), r.reduce(addWords(r), floatSize, 2), r.order()
	low, high := r.perByte(0x0f), r.perByte(0xf0)
	r.count("turn", half/stepsPer(r), func() {
		r.fetchAt("code", codeAhead, stepsPer(r))
		a := quantized(r, 0, inverse, order, squares)
		b := quantized(r, half*floatSize, inverse, order, squares)
		lane{routine: r}.and(low, a)
		r.VPSLLW(operand.U8(4), b, b)
		lane{routine: r}.and(high, b)
		r.or(a, b)
		r.VMOVUPS(b, r.offset("code", 0))
		r.ADDQ(operand.U32(stepsPer(r)*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(stepsPer(r)), r.stream("code").next)
	})
	squares.storeWord()
}

func signsOf(r *routine) {
	bytesOf(r, "signs", func(bytes int) reg.VecVirtual {
		v := r.register(r.width)
		r.VMOVUPS(r.offset("x", bytes), v)
		r.VPSRLD(operand.U8(signBit), v, v)
		return v
	})
}

// sumAbs has a sum for each of 16 places, whatever the width of a register.
func sumAbs(r *routine) {
	add := func(a, b, c operand.Op) { r.VADDPD(a, b, c) }
	perRegister := r.width / doubleSize
	d := r.reduce(add, doubleSize, sumPlaces/perRegister)
	mask := r.register(r.width)
	word := r.GP64()
	r.MOVQ(operand.U64(1<<63-1), word)
	r.VMOVQ(word, mask.AsX())
	r.VPBROADCASTQ(mask.AsX(), mask)
	r.count("turn", blockLen/sumPlaces, func() {
		for i, acc := range d.acc {
			v := r.register(r.width)
			r.VCVTPS2PD(r.offset("x", i*perRegister*floatSize), v)
			lane{routine: r}.and(mask, v)
			r.VADDPD(v, acc, acc)
		}
		r.ADDQ(operand.U32(sumPlaces*floatSize), r.stream("x").next)
	})
	d.fold()
	r.Store(d.finish(), r.ReturnIndex(0))
	r.close()
}

func stepSquares(r *routine) {
	squares := r.reduce(addWords(r), floatSize, 2)
	per := r.width / halfSize
	r.count("turn", blockLen/per/len(squares.acc), func() {
		for i, acc := range squares.acc {
			v := r.register(r.width)
			r.VPMOVSXBW(r.offset("steps", i*per), v)
			r.VPMADDWD(v, v, v)
			r.VPADDD(v, acc, acc)
		}
		r.ADDQ(operand.U32(per*len(squares.acc)), r.stream("steps").next)
	})
	squares.storeWord()
}

// stepValues emits body for each vector of values of a block, which are whole steps.
func stepValues(r *routine, body func(v reg.VecVirtual, to operand.Mem)) {
	step := r.argument("step")
	per := unroll * r.floats()
	r.count("turn", blockLen/per, func() {
		r.fetch("dst", 0, per*floatSize)
		r.fetchAt("steps", codeAhead, per)
		for i := range unroll {
			v := r.register(r.width)
			r.VPMOVSXBD(r.offset("steps", i*r.floats()), v)
			r.VCVTDQ2PS(v, v)
			r.VMULPS(step, v, v)
			body(v, r.offset("dst", i*r.width))
		}
		r.ADDQ(operand.U32(per*floatSize), r.stream("dst").next)
		r.ADDQ(operand.U32(per), r.stream("steps").next)
	})
	r.close()
}

func stepsDecode(r *routine) {
	stepValues(r, func(v reg.VecVirtual, to operand.Mem) { r.VMOVUPS(v, to) })
}

func stepsAdd(r *routine) {
	stepValues(r, func(v reg.VecVirtual, to operand.Mem) {
		r.VADDPS(to, v, v)
		r.VMOVUPS(v, to)
	})
}
