package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	sums    = 8 // accumulators of a sum, whose additions take four cycles each
	maxima  = 4 // accumulators of a largest value
	signBit = 31

	magnitudeBits = 0x7fffffff
	infinityBits  = 0x7f800000
	halfMagnitude = 0x7fff7fff
	halfInfinity  = 0x7f80
)

// operation emits c = a op b for registers of one size.
type operation func(a, b, c operand.Op)

// reduction is one result that a routine gathers in several accumulators.
type reduction struct {
	*routine
	op   operation
	size int // bytes of a value
	acc  []reg.VecVirtual
}

// reduce makes accumulators that start as zeros.
func (r *routine) reduce(op operation, size, count int) *reduction {
	d := &reduction{routine: r, op: op, size: size}
	for range count {
		d.acc = append(d.acc, r.zero())
	}
	return d
}

// of returns the accumulator of a lane, as wide as the lane's values.
func (d *reduction) of(l lane) reg.Register {
	return l.see(d.acc[l.index%len(d.acc)], d.size)
}

// fold combines the accumulators in the low XMM part of the first one.
func (d *reduction) fold() {
	for count := len(d.acc) / 2; count > 0; count /= 2 {
		for i := range count {
			d.op(d.acc[i+count], d.acc[i], d.acc[i])
		}
	}
	if d.width == widthZ {
		upper := d.YMM()
		d.VEXTRACTF64X4(operand.U8(1), d.acc[0], upper)
		d.op(upper, d.acc[0].AsY(), d.acc[0].AsY())
	}
	upper := d.XMM()
	d.VEXTRACTF128(operand.U8(1), d.acc[0].AsY(), upper)
	d.op(upper, d.acc[0].AsX(), d.acc[0].AsX())
}

// finish combines the values of the first accumulator's XMM part and returns it;
// the result is its lowest value.
func (d *reduction) finish() reg.Register {
	low, upper := d.acc[0].AsX(), d.XMM()
	for bytes := widthX / 2; bytes >= d.size; bytes /= 2 {
		d.VPSRLDQ(operand.U8(bytes), low, upper)
		d.op(upper, low, low)
	}
	return low
}

// gather emits body for all values of a reduction, which folds its own.
func gather(r *routine, lead string, per, unroll int, all []*reduction, body func(lane)) {
	r.align(lead, per, body)
	r.strands(per, body)
	r.vectors(per, unroll, body)
	for _, d := range all {
		d.fold()
	}
	r.singles(body)
}

// sum emits a float64 sum of what term adds to the lane's accumulator.
func sum(r *routine, term func(l lane, acc reg.Register)) {
	d := r.reduce(func(a, b, c operand.Op) { r.VADDPD(a, b, c) }, doubleSize, sums)
	gather(r, "x", r.width/doubleSize, sums, []*reduction{d}, func(l lane) { term(l, d.of(l)) })
	r.Store(d.finish(), r.ReturnIndex(0))
	r.close()
}

func sumSquares(r *routine) {
	sum(r, func(l lane, acc reg.Register) {
		x := l.doubles("x")
		l.VFMADD231PD(x, x, acc)
	})
}

func squaredDistance(r *routine) {
	sum(r, func(l lane, acc reg.Register) {
		x, y := l.doubles("x"), l.doubles("y")
		l.VSUBPD(y, x, x)
		l.VFMADD231PD(x, x, acc)
	})
}

// scaledDistance emits an elementwise kernel and a sum in one pass: it is bound by
// memory, so the sum costs little.
func scaledDistance(r *routine) {
	w := r.argument("w")
	d := r.reduce(func(a, b, c operand.Op) { r.VADDPD(a, b, c) }, doubleSize, sums)
	gather(r, "dst", r.width/doubleSize, sums, []*reduction{d}, func(l lane) {
		x, y, wide := l.load("x"), l.load("y"), l.vector(doubleSize)
		l.VSUBPS(y, x, x)
		l.VCVTPS2PD(x, wide)
		l.VFMADD231PD(wide, wide, d.of(l))
		l.VMULPS(l.see(w, floatSize), x, x)
		l.store(x, "dst")
	})
	r.Store(d.finish(), r.ReturnIndex(0))
	r.close()
}

// largest emits the largest magnitude of the stream's float32 values, as an
// integer in the lowest place.
func largest(r *routine, name string) reg.Register {
	mask := r.bits(magnitudeBits)
	d := r.reduce(func(a, b, c operand.Op) { r.VPMAXUD(a, b, c) }, floatSize, maxima)
	gather(r, name, r.floats(), 2*maxima, []*reduction{d}, func(l lane) {
		v := l.load(name)
		l.and(l.see(mask, floatSize), v)
		l.VPMAXUD(v, d.of(l), d.of(l))
	})
	return d.finish()
}

func maxAbs(r *routine) {
	r.Store(largest(r, "x"), r.ReturnIndex(0))
	r.close()
}

func finite(r *routine)        { below(r, largest(r, "x"), infinityBits) }
func float32Finite(r *routine) { below(r, largest(r, "code"), infinityBits) }

func bf16Finite(r *routine) { halvesBelow(r, halfInfinity) }

// halvesBelow returns from the routine whether the magnitudes of all 16-bit values
// are below limit.
func halvesBelow(r *routine, limit uint32) {
	mask := r.bits(halfMagnitude)
	d := r.reduce(func(a, b, c operand.Op) { r.VPMAXUW(a, b, c) }, halfSize, maxima)
	gather(r, "code", r.width/halfSize, 2*maxima, []*reduction{d}, func(l lane) {
		v, from := l.vector(halfSize), l.at(l.stream("code"))
		if l.single() {
			l.loadHalf(from, v)
		} else {
			l.VMOVUPS(from, v)
		}
		l.and(l.see(mask, halfSize), v)
		l.VPMAXUW(v, d.of(l), d.of(l))
	})
	low := d.finish()
	word := r.GP32()
	r.VPEXTRW(operand.U8(0), low, word)
	belowWord(r, word, limit)
}

// below returns from the routine whether the lowest 32 bits of v are less than
// limit.
func below(r *routine, v reg.Register, limit uint32) {
	word := r.GP32()
	r.VMOVD(v, word)
	belowWord(r, word, limit)
}

func belowWord(r *routine, word reg.Register, limit uint32) {
	less := r.GP8()
	r.CMPL(word, operand.U32(limit))
	r.SETCS(less)
	r.Store(less, r.ReturnIndex(0))
	r.close()
}
