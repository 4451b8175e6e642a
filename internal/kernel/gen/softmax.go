package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// triangle is how a routine goes down rows of which the first kept values count, one more
// in each row. Arguments that change are kept where they came from.
type triangle struct {
	*walk
	kept, rest reg.GPVirtual
}

// eachTriangleRow emits body for all rows, and zeros after the values of the first stream
// that count.
func eachTriangleRow(r *routine, body func(triangle)) {
	t := triangle{walk: r.walk(), kept: r.GP64(), rest: r.GP64()}
	zero := r.zero()
	stride := r.GP64()
	r.Load(r.Param("kept"), t.kept)
	r.Label("row")
	body(t)
	r.MOVQ(r.number("n"), t.rest)
	r.SUBQ(t.kept, t.rest)
	past := r.GP64()
	r.MOVQ(r.streams[0].next, past)
	r.LEAQ(operand.Mem{Base: past, Index: t.kept, Scale: floatSize}, past)
	t.along("zeros", t.rest, func(p part) { p.store(zero, past) })
	r.MOVQ(r.number("n"), stride)
	for _, s := range r.streams {
		if s.size == floatSize {
			r.LEAQ(operand.Mem{Base: s.next, Index: stride, Scale: floatSize}, s.next)
		}
	}
	r.CMPQ(t.kept, r.number("n"))
	r.JAE(operand.LabelRef("whole"))
	r.INCQ(t.kept)
	r.Label("whole")
	r.DECQ(r.number("rows"))
	r.JNZ(operand.LabelRef("row"))
	r.close()
}

// number is the memory of an argument.
func (r *routine) number(name string) operand.Mem {
	basic, err := r.Param(name).Resolve()
	if err != nil {
		r.faults = append(r.faults, err)
		return operand.Mem{}
	}
	return basic.Addr
}

func softmaxRows(r *routine) {
	x, stats, told := r.stream("x").next, r.stream("stats").next, r.GP64()
	r.Load(r.Param("stats").Len(), told)
	factor := r.argument("factor")
	most, sum := r.register(r.width), r.placeSum()
	eachTriangleRow(r, func(t triangle) {
		r.VMOVUPS(r.constant(math.Inf(-1)), most)
		scaled := func(p part) reg.VecVirtual { return p.product(p.load(x), factor) }
		t.along("most", t.kept, func(p part) {
			v := scaled(p)
			p.fill(v, p.constant(math.Inf(-1)))
			p.VMAXPS(most, v, most) // most, unless v is greater
		})
		r.largest(most)
		sum.clear()
		t.along("exponentials", t.kept, func(p part) {
			v := scaled(p)
			p.VSUBPS(most, v, v)
			p.fill(v, p.constant(math.Inf(-1)))
			v = p.exponential(v, expNegligible)
			p.store(v, x)
			sum.add(p, p.doubles(v))
		})
		total := sum.total()
		r.TESTQ(told, told)
		r.JZ(operand.LabelRef("untold"))
		wide := r.XMM()
		r.VCVTSS2SD(most.AsX(), most.AsX(), wide)
		r.VMOVSD(wide, operand.Mem{Base: stats})
		r.VMOVSD(total, operand.Mem{Base: stats, Disp: doubleSize})
		r.ADDQ(operand.U32(2*doubleSize), stats)
		r.Label("untold")
		scale := r.XMM()
		r.VXORPS(scale, scale, scale)
		r.VCVTSS2SD(r.number("scale"), scale, scale)
		r.VDIVSD(total, scale, scale)
		share := r.everywhere(scale)
		t.along("shares", t.kept, func(p part) { p.store(p.product(p.load(x), share), x) })
	})
}

// largest puts the largest of a register's values in all its places.
func (r *routine) largest(v reg.VecVirtual) {
	if r.width == widthZ {
		upper := r.YMM()
		r.VEXTRACTF64X4(operand.U8(1), v, upper)
		r.VMAXPS(upper, v.AsY(), v.AsY())
	}
	upper := r.XMM()
	r.VEXTRACTF128(operand.U8(1), v.AsY(), upper)
	r.VMAXPS(upper, v.AsX(), v.AsX())
	for _, bytes := range []int{widthX / 2, floatSize} {
		r.VPSRLDQ(operand.U8(bytes), v.AsX(), upper)
		r.VMAXPS(upper, v.AsX(), v.AsX())
	}
	r.VBROADCASTSS(v.AsX(), v)
}

func softmaxRowsGradient(r *routine) {
	grad, shares := r.stream("grad").next, r.stream("p").next
	factor := r.argument("factor")
	sum := r.placeSum()
	eachTriangleRow(r, func(t triangle) {
		sum.clear()
		t.along("dot", t.kept, func(p part) {
			sum.addProducts(p, p.doubles(p.load(shares)), p.doubles(p.load(grad)))
		})
		dot := r.everywhere(sum.total())
		t.along("values", t.kept, func(p part) {
			v := p.minus(p.load(grad), dot)
			p.VMULPS(p.load(shares), v, v)
			p.VMULPS(factor, v, v)
			p.store(v, grad)
		})
	})
}
