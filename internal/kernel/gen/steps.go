package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (r *routine) addWords() operation {
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

func quantizeSteps(r *routine) {
	inverse, squares := r.argument("inverse"), r.reduce(r.addWords(), floatSize, 2)
	order := r.packOrder()
	per := 4 * r.floats()
	r.count("turn", blockLen/per, func() {
		var v [4]reg.VecVirtual
		for i := range v {
			v[i] = r.register(r.width)
			r.VMULPS(r.offset("x", i*r.width), inverse, v[i])
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
		r.VMOVUPS(v[0], r.offset("steps", 0))
		r.ADDQ(operand.U32(per*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(per), r.stream("steps").next)
	})
	squares.storeWord()
}

// packOrder is order at the level's width.
func (r *routine) packOrder() reg.VecVirtual {
	if r.width == widthY {
		return r.order()
	}
	low, high, v, upper := r.GP64(), r.GP64(), r.ZMM(), r.XMM()
	r.MOVQ(operand.U64(0x0d_09_05_01_0c_08_04_00), low)
	r.MOVQ(operand.U64(0x0f_0b_07_03_0e_0a_06_02), high)
	r.VMOVQ(low, v.AsX())
	r.VMOVQ(high, upper)
	r.VPUNPCKLQDQ(upper, v.AsX(), v.AsX())
	r.VPMOVZXBD(v.AsX(), v)
	return v
}

func signsOf(r *routine) {
	bytes := r.bits(0xff)
	var order reg.VecVirtual
	if r.width == widthY {
		order = r.order()
	}
	r.count("turn", blockLen/group, func() {
		var all []reg.VecVirtual
		for i := range group / r.floats() {
			v := r.register(r.width)
			r.VMOVUPS(r.offset("x", i*r.width), v)
			r.VPSRLD(operand.U8(signBit), v, v)
			all = append(all, v)
		}
		r.lowBytes(all, bytes, order, func(i int) operand.Mem { return r.offset("signs", i*r.floats()) })
		r.ADDQ(operand.U32(group*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(group), r.stream("signs").next)
	})
	r.close()
}

// sumAbs has a sum for each of 16 places, whatever the width of a register.
func sumAbs(r *routine) {
	const places = 16
	add := func(a, b, c operand.Op) { r.VADDPD(a, b, c) }
	perRegister := r.width / doubleSize
	d := r.reduce(add, doubleSize, places/perRegister)
	mask := r.register(r.width)
	word := r.GP64()
	r.MOVQ(operand.U64(1<<63-1), word)
	r.VMOVQ(word, mask.AsX())
	r.VPBROADCASTQ(mask.AsX(), mask)
	r.count("turn", blockLen/places, func() {
		for i, acc := range d.acc {
			v := r.register(r.width)
			r.VCVTPS2PD(r.offset("x", i*perRegister*floatSize), v)
			lane{routine: r}.and(mask, v)
			r.VADDPD(v, acc, acc)
		}
		r.ADDQ(operand.U32(places*floatSize), r.stream("x").next)
	})
	d.fold()
	r.Store(d.finish(), r.ReturnIndex(0))
	r.close()
}

func stepSquares(r *routine) {
	squares := r.reduce(r.addWords(), floatSize, 2)
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
