package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// normRows emits body for all rows of the slices named, whose length is that of scale.
func normRows(r *routine, body func(w *walk, length reg.GPVirtual), rows ...string) {
	w, length, stride := r.walk(), r.GP64(), r.GP64()
	r.Load(r.Param("scale").Len(), length)
	r.Label("row")
	body(w, length)
	r.MOVQ(length, stride)
	for _, name := range rows {
		next := r.stream(name).next
		r.LEAQ(operand.Mem{Base: next, Index: stride, Scale: floatSize}, next)
	}
	for _, name := range []string{"mean", "inverse"} {
		r.ADDQ(operand.U32(floatSize), r.stream(name).next)
	}
	r.DECQ(r.number("rows"))
	r.JNZ(operand.LabelRef("row"))
	r.close()
}

// meanOf divides a sum by the number of values, in place.
func (r *routine) meanOf(sum reg.Register, length reg.GPVirtual) {
	n := r.XMM()
	r.VXORPS(n, n, n)
	r.VCVTSI2SDQ(length, n, n)
	r.VDIVSD(n, sum, sum)
}

// normalized is (x-mean)*inverse, in place of x.
func (p part) normalized(x, mean, inverse reg.VecVirtual) reg.VecVirtual {
	p.VSUBPS(mean, x, x)
	p.VMULPS(inverse, x, x)
	return x
}

func layerNorm(r *routine) {
	x, dst := r.stream("x").next, r.stream("dst").next
	scale, shift := r.stream("scale").next, r.stream("shift").next
	sum, squares := r.placeSum(), r.placeSum()
	normRows(r, func(w *walk, length reg.GPVirtual) {
		sum.clear()
		squares.clear()
		w.along("moments", length, func(p part) {
			d := p.doubles(p.load(x))
			sum.add(p, d)
			squares.addProducts(p, d, d)
		})
		mean, variance := sum.total(), squares.total()
		r.meanOf(mean, length)
		r.meanOf(variance, length)
		inverse, other, one := r.XMM(), r.XMM(), r.GP64()
		r.VMULSD(mean, mean, other)
		r.VSUBSD(other, variance, variance)
		r.VXORPS(other, other, other)
		r.VMAXSD(variance, other, variance) // keeps NaN
		r.VCVTSS2SD(r.number("epsilon"), other, other)
		r.VADDSD(other, variance, variance)
		r.VSQRTSD(variance, variance, variance)
		r.MOVQ(operand.U64(math.Float64bits(1)), one)
		r.VMOVQ(one, inverse)
		r.VDIVSD(variance, inverse, inverse)
		m, s := r.everywhere(mean), r.everywhere(inverse)
		r.VMOVSS(m.AsX(), r.offset("mean", 0))
		r.VMOVSS(s.AsX(), r.offset("inverse", 0))
		w.along("values", length, func(p part) {
			v := p.normalized(p.load(x), m, s)
			p.VMULPS(p.load(scale), v, v)
			p.VADDPS(p.load(shift), v, v)
			p.store(v, dst)
		})
	}, "x", "dst")
}

func layerNormGradient(r *routine) {
	dst, grad, x, scale := r.stream("dst").next, r.stream("grad").next, r.stream("x").next, r.stream("scale").next
	sum, products := r.placeSum(), r.placeSum()
	mean, inverse := r.register(r.width), r.register(r.width)
	normRows(r, func(w *walk, length reg.GPVirtual) {
		r.VBROADCASTSS(r.offset("mean", 0), mean)
		r.VBROADCASTSS(r.offset("inverse", 0), inverse)
		sum.clear()
		products.clear()
		w.along("sums", length, func(p part) {
			d := p.doubles(p.product(p.load(scale), p.load(grad)))
			sum.add(p, d)
			products.addProducts(p, d, p.doubles(p.normalized(p.load(x), mean, inverse)))
		})
		a, b := sum.total(), products.total()
		r.meanOf(a, length)
		r.meanOf(b, length)
		push, turn := r.everywhere(a), r.everywhere(b)
		w.along("values", length, func(p part) {
			v := p.product(p.load(scale), p.load(grad))
			p.VSUBPS(push, v, v)
			h := p.normalized(p.load(x), mean, inverse)
			p.VMULPS(turn, h, h)
			p.VSUBPS(h, v, v)
			p.VMULPS(inverse, v, v)
			p.store(v, dst)
		})
	}, "dst", "grad", "x")
}

// layerNormSums has y for the gradient, since eachColumn walks through x and y.
func layerNormSums(r *routine) {
	eachColumn(r, func(l lane, acc []reg.Register) {
		l.VXORPD(acc[0], acc[0], acc[0])
		l.VXORPD(acc[1], acc[1], acc[1])
	}, func(l lane, acc []reg.Register) {
		h, of, wide, grad := l.load("x"), l.vector(floatSize), l.vector(doubleSize), l.doubles("y")
		l.VBROADCASTSS(l.offset("mean", 0), of)
		l.VSUBPS(of, h, h)
		l.VBROADCASTSS(l.offset("inverse", 0), of)
		l.VMULPS(of, h, h)
		l.VCVTPS2PD(h, wide)
		l.VADDPD(grad, acc[0], acc[0])
		l.VFMADD231PD(grad, wide, acc[1])
	}, func(l lane, acc []reg.Register) {
		for i, name := range []string{"shiftGrad", "scaleGrad"} {
			sum := l.narrowed(acc[i])
			l.VADDPS(l.load(name), sum, sum)
			l.store(sum, name)
		}
	}, "scaleGrad", 2)
}
