package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// castagnoli is the polynomial of CRC32C, reflected.
const castagnoli = 0x82f63b78

// checksums are the CRC32C of a block's four quarters under way. One alone would
// wait for each step's latency.
type checksums struct {
	*routine
	quarters [quarters]reg.GPVirtual
	room     operand.Mem // for the indices of a turn, until they are summed
	turn     int         // bytes of a quarter in a turn
}

func newChecksums(r *routine, values int) *checksums {
	c := &checksums{routine: r, room: r.AllocLocal(quarters * values * floatSize), turn: values * floatSize}
	for i := range c.quarters {
		c.quarters[i] = r.GP64()
		if i == 0 {
			r.MOVL(operand.U32(0xffffffff), c.quarters[i].As32())
		} else {
			r.XORL(c.quarters[i].As32(), c.quarters[i].As32())
		}
	}
	return c
}

// index is where to put indices of a quarter.
func (c *checksums) index(quarter, bytes int) operand.Mem {
	return c.room.Offset(quarter*c.turn + bytes)
}

// take adds so many bytes of what a turn has put. The processor has one place for
// this step: only if other work stands between few of them do both go on at once.
func (c *checksums) take(quarter, at, bytes int) {
	for ; bytes > 0; at, bytes = at+8, bytes-8 {
		c.CRC32Q(c.index(quarter, at), c.quarters[quarter])
	}
}

// turns emits work for each turn, which takes what the turn before put, each part
// just before it puts its own in the same place.
func (c *checksums) turns(values int, work func(take func(quarter, at, bytes int))) {
	count := quarter / values
	work(func(_, _, _ int) {})
	c.count("turn", count-1, func() { work(c.take) })
	for at := 0; at < c.turn; at += 8 {
		for i := range c.quarters {
			c.take(i, at, 8)
		}
	}
}

// finish returns the checksum of the whole block: each quarter's, moved by the length
// of those behind it, which is a product of polynomials.
func (c *checksums) finish() reg.GPVirtual {
	const quarterBits = 8 * floatSize * quarter
	total := c.XMM()
	for i, sum := range c.quarters[:quarters-1] {
		factor, v, k := c.GP32(), c.XMM(), c.XMM()
		// The product of two reflected numbers is one place short, and a step of
		// CRC32 moves by another 32.
		c.MOVL(operand.U32(power((quarters-1-i)*quarterBits-33)), factor)
		c.VMOVD(factor, k)
		c.VMOVQ(sum, v)
		c.VPCLMULQDQ(operand.U8(0), k, v, v)
		if i == 0 {
			total = v
		} else {
			c.VPXOR(v, total, total)
		}
	}
	product, all := c.GP64(), c.GP64()
	c.VMOVQ(total, product)
	c.XORL(all.As32(), all.As32())
	c.CRC32Q(product, all)
	c.XORQ(c.quarters[quarters-1], all)
	c.NOTL(all.As32())
	return all
}

// power is x^n modulo the polynomial, reflected.
func power(n int) uint32 {
	p := uint32(1) << 31
	for range n {
		carry := p & 1
		p >>= 1
		if carry != 0 {
			p ^= castagnoli
		}
	}
	return p
}

func latticeIndices(r *routine) {
	inverse, mask := r.argument("inverse"), r.bits(magnitudeBits)
	most := r.reduce(func(a, b, c operand.Op) { r.VPMAXUD(a, b, c) }, floatSize, 2)
	sums := newChecksums(r, group)
	bytes, order := r.bits(0xff), r.order()
	soon := r.fetchFrom("x")
	sums.turns(group, func(take func(quarter, at, bytes int)) {
		soon(quarters * group * floatSize)
		var packed [quarters]reg.VecVirtual
		for i := 0; i < group/r.floats(); i += 2 {
			for q := range quarters {
				var z [2]reg.VecVirtual
				for j := range z {
					at := (i + j) * r.width
					take(q, at, r.width)
					var v reg.VecVirtual
					v, z[j] = r.index(q*quarter*floatSize+at, inverse)
					r.VMOVUPS(z[j], sums.index(q, at))
					lane{routine: r}.and(mask, v)
					r.VPMAXUD(v, most.acc[j], most.acc[j])
				}
				r.lowBytes(z, &packed[q], bytes, order, func(bytes int) operand.Mem { return r.offset("low", q*quarter+bytes) })
			}
		}
		r.ADDQ(operand.U32(group*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(group), r.stream("low").next)
	})
	most.fold()
	low := most.finish()
	r.Store(sums.finish().As32(), r.ReturnIndex(0))
	r.Store(low, r.ReturnIndex(1))
	r.close()
}

// index returns the vector of x at so many bytes, and that of its indices.
func (r *routine) index(bytes int, inverse reg.VecVirtual) (v, z reg.VecVirtual) {
	v, z = r.register(r.width), r.register(r.width)
	r.VMOVUPS(r.offset("x", bytes), v)
	r.VMULPS(inverse, v, z)
	r.VCVTPS2DQ(z, z)
	return v, z
}

func latticeHigh(r *routine) {
	const byteBits = 8
	inverse := r.argument("inverse")
	bytesOf(r, "high", func(bytes int) reg.VecVirtual {
		_, z := r.index(bytes, inverse)
		r.VPSRLD(operand.U8(byteBits), z, z)
		return z
	})
}

// bytesOf emits a kernel that writes the lowest byte of each 32-bit value that word
// gives.
func bytesOf(r *routine, to string, word func(bytes int) reg.VecVirtual) {
	bytes, order := r.bits(0xff), r.order()
	r.count("turn", blockLen/group, func() {
		var packed reg.VecVirtual
		for i := 0; i < group/r.floats(); i += 2 {
			z := [2]reg.VecVirtual{word(i * r.width), word((i + 1) * r.width)}
			r.lowBytes(z, &packed, bytes, order, func(bytes int) operand.Mem { return r.offset(to, bytes) })
		}
		r.ADDQ(operand.U32(group*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(group), r.stream(to).next)
	})
	r.close()
}

// latticeDecoder emits the kernels that decode.
type latticeDecoder struct {
	wide       bool // bits come from a second byte too
	difference bool // from the reference, not the values themselves
}

// decoding holds what a decoder keeps in registers.
type decoding struct {
	*routine
	latticeDecoder
	spacing, inverse, half, low reg.VecVirtual
	magnitudes                  reg.VecVirtual
	peak, squares               *reduction
	sums                        *checksums
}

// turnLen is how many values of each quarter a decoder takes in a turn, and how many
// sums of squares there are.
const turnLen = 16

func (how latticeDecoder) emit(r *routine) {
	largest := func(a, b, c operand.Op) { r.VPMAXUD(a, b, c) }
	d := decoding{routine: r, latticeDecoder: how, spacing: r.argument("spacing"), inverse: r.argument("inverse")}
	d.half, d.low = r.wordArgument("half"), r.wordArgument("mask")
	if how.difference {
		d.magnitudes = r.bits(magnitudeBits)
		d.peak = r.reduce(largest, floatSize, 1)
		d.squares = r.reduce(func(a, b, c operand.Op) { r.VADDPS(a, b, c) }, floatSize, turnLen/r.floats())
	}
	d.sums = newChecksums(r, turnLen)
	soon := r.fetchFrom("reference")
	d.sums.turns(turnLen, func(take func(quarter, at, bytes int)) {
		soon(quarters * turnLen * floatSize)
		for i := range turnLen / r.floats() {
			d.vectors(i, take)
		}
		for _, s := range r.streams {
			r.ADDQ(operand.U32(turnLen*s.size), s.next)
		}
	})
	r.Store(d.sums.finish().As32(), r.ReturnIndex(0))
	if how.difference {
		for i, result := range []*reduction{d.peak, d.squares} {
			result.fold()
			r.Store(result.finish(), r.ReturnIndex(i+1))
		}
	}
	r.close()
}

// vectors decodes the i-th vector of each quarter's turn, all step by step: one after
// the other, each would wait for its own steps longer than the processor looks ahead.
func (d *decoding) vectors(i int, take func(quarter, at, bytes int)) {
	var z, v [quarters]reg.VecVirtual
	for q := range quarters {
		z[q], v[q] = d.register(d.width), d.register(d.width)
	}
	at := i * d.width
	for n, step := range d.steps(i) {
		if sum := 8 * n; sum < d.width {
			for q := range quarters {
				take(q, at+sum, 8)
			}
		}
		for q := range quarters {
			step(q, z[q], v[q])
		}
	}
}

// steps decode the i-th vector of quarter q with two registers.
func (d *decoding) steps(i int) []func(q int, z, v reg.VecVirtual) {
	at := func(q int) int { return q*quarter + i*d.floats() }
	own := func(q int) operand.Mem { return d.offset("reference", at(q)*floatSize) }
	steps := []func(q int, z, v reg.VecVirtual){
		func(q int, z, v reg.VecVirtual) { d.code(at(q), v, z) },
		func(q int, z, v reg.VecVirtual) { d.VMULPS(own(q), d.inverse, z) },
		func(q int, z, v reg.VecVirtual) { d.VCVTPS2DQ(z, z) },
		func(q int, z, v reg.VecVirtual) { d.VPSUBD(d.half, z, z) },
		func(q int, z, v reg.VecVirtual) { d.VPSUBD(z, v, v) },
		func(q int, z, v reg.VecVirtual) { lane{routine: d.routine}.and(d.low, v) },
		func(q int, z, v reg.VecVirtual) { d.VPADDD(v, z, z) },
		// By this time the sum has taken what is overwritten here.
		func(q int, z, v reg.VecVirtual) { d.VMOVUPS(z, d.sums.index(q, i*d.width)) },
		func(q int, z, v reg.VecVirtual) { d.VCVTDQ2PS(z, v) },
		func(q int, z, v reg.VecVirtual) { d.VMULPS(d.spacing, v, v) },
	}
	store := func(q int, z, v reg.VecVirtual) { d.VMOVUPS(v, d.offset("dst", at(q)*floatSize)) }
	if !d.difference {
		return append(steps, store)
	}
	return append(steps,
		func(q int, z, v reg.VecVirtual) { d.VSUBPS(own(q), v, v) },
		store,
		func(q int, z, v reg.VecVirtual) { d.VMULPS(v, v, z) },
		func(q int, z, v reg.VecVirtual) { lane{routine: d.routine}.and(d.magnitudes, v) },
		func(q int, z, v reg.VecVirtual) { d.VPMAXUD(v, d.peak.acc[0], d.peak.acc[0]) },
		func(q int, z, v reg.VecVirtual) { d.VADDPS(z, d.squares.acc[i], d.squares.acc[i]) },
	)
}

// code loads the codes of a vector, with the help of another register.
func (d *decoding) code(at int, v, high reg.VecVirtual) {
	d.VPMOVZXBD(d.offset("low", at), v)
	if d.wide {
		const byteBits = 8
		d.VPMOVZXBD(d.offset("high", at), high)
		d.VPSLLD(operand.U8(byteBits), high, high)
		d.or(high, v)
	}
}
