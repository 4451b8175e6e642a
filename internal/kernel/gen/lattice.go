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

func (r *routine) newChecksums(values int) *checksums {
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

// take adds what a turn has put.
func (c *checksums) take() {
	for at := 0; at < c.turn; at += 8 {
		for i, sum := range c.quarters {
			c.CRC32Q(c.index(i, at), sum)
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
	sums := r.newChecksums(group)
	bytes := r.bits(0xff)
	var order reg.VecVirtual
	if r.width == widthY {
		order = r.order()
	}
	r.count("turn", quarter/group, func() {
		for q := range quarters {
			r.indices(q, inverse, func(i int, v, z reg.VecVirtual) {
				r.VMOVUPS(z, sums.index(q, i*r.width))
				lane{routine: r}.and(mask, v)
				acc := most.acc[i%len(most.acc)]
				r.VPMAXUD(v, acc, acc)
			}, "low", bytes, order)
		}
		sums.take()
		r.ADDQ(operand.U32(group*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(group), r.stream("low").next)
	})
	most.fold()
	low := most.finish()
	r.Store(sums.finish().As32(), r.ReturnIndex(0))
	r.Store(low, r.ReturnIndex(1))
	r.close()
}

// indices writes the lowest bytes of the indices of a group of a quarter. See is
// given each vector of values, to keep, and that of its indices, to leave as it is.
func (r *routine) indices(q int, inverse reg.VecVirtual, see func(i int, v, z reg.VecVirtual), to string, bytes, order reg.VecVirtual) {
	var all []reg.VecVirtual
	for i := range group / r.floats() {
		v, z := r.register(r.width), r.register(r.width)
		r.VMOVUPS(r.offset("x", q*quarter*floatSize+i*r.width), v)
		r.VMULPS(inverse, v, z)
		r.VCVTPS2DQ(z, z)
		see(i, v, z)
		all = append(all, z)
	}
	r.lowBytes(all, bytes, order, func(i int) operand.Mem { return r.offset(to, q*quarter+i*r.floats()) })
}

func latticeHigh(r *routine) {
	const byteBits = 8
	inverse, bytes := r.argument("inverse"), r.bits(0xff)
	var order reg.VecVirtual
	if r.width == widthY {
		order = r.order()
	}
	r.count("turn", quarter/group, func() {
		for q := range quarters {
			r.indices(q, inverse, func(_ int, _, z reg.VecVirtual) { r.VPSRLD(operand.U8(byteBits), z, z) }, "high", bytes, order)
		}
		r.ADDQ(operand.U32(group*floatSize), r.stream("x").next)
		r.ADDQ(operand.U32(group), r.stream("high").next)
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
	spacing, inverse, shift, mask reg.VecVirtual
	most, peak, squares           *reduction
	sums                          *checksums
}

// turnLen is how many values of each quarter a decoder takes in a turn, and how many
// sums of squares there are.
const turnLen = 16

func (how latticeDecoder) emit(r *routine) {
	largest := func(a, b, c operand.Op) { r.VPMAXUD(a, b, c) }
	d := decoding{routine: r, latticeDecoder: how, spacing: r.argument("spacing"), inverse: r.argument("inverse")}
	word := r.GP32()
	r.Load(r.Param("shift"), word)
	d.shift = r.register(r.width)
	r.VMOVD(word, d.shift.AsX())
	r.VPBROADCASTD(d.shift.AsX(), d.shift)
	d.most = r.reduce(largest, floatSize, 1)
	if how.difference {
		d.mask = r.bits(magnitudeBits)
		d.peak = r.reduce(largest, floatSize, 1)
		d.squares = r.reduce(func(a, b, c operand.Op) { r.VADDPS(a, b, c) }, floatSize, turnLen/r.floats())
	}
	d.sums = r.newChecksums(turnLen)
	r.count("turn", quarter/turnLen, func() {
		for q := range quarters {
			for i := range turnLen / r.floats() {
				d.vector(q, i)
			}
		}
		d.sums.take()
		for _, s := range r.streams {
			r.ADDQ(operand.U32(turnLen*s.size), s.next)
		}
	})
	r.Store(d.sums.finish().As32(), r.ReturnIndex(0))
	results := []*reduction{d.most, d.peak, d.squares}
	for i, result := range results {
		if result == nil {
			break
		}
		result.fold()
		low := result.finish()
		if i == 0 {
			word := r.GP32()
			r.VMOVD(low, word)
			r.Store(word, r.ReturnIndex(1))
		} else {
			r.Store(low, r.ReturnIndex(i+1))
		}
	}
	r.close()
}

// vector decodes the i-th vector of a quarter's turn.
func (d *decoding) vector(q, i int) {
	at := q*quarter + i*d.floats()
	own, z, code := d.register(d.width), d.register(d.width), d.register(d.width)
	d.VPMOVZXBD(d.offset("low", at), code)
	if d.wide {
		const byteBits = 8
		high := d.register(d.width)
		d.VPMOVZXBD(d.offset("high", at), high)
		d.VPSLLD(operand.U8(byteBits), high, high)
		d.or(high, code)
	}
	d.VMOVUPS(d.offset("reference", at*floatSize), own)
	d.VMULPS(d.inverse, own, z)
	d.VCVTPS2DQ(z, z)
	d.VPSUBD(z, code, code)
	d.VPSLLVD(d.shift, code, code)
	d.VPSRAVD(d.shift, code, code)
	d.VPADDD(code, z, z)
	d.VMOVUPS(z, d.sums.index(q, i*d.width))
	v := d.register(d.width)
	d.VCVTDQ2PS(z, v)
	d.VPABSD(z, z)
	d.VPMAXUD(z, d.most.acc[0], d.most.acc[0])
	d.VMULPS(d.spacing, v, v)
	if d.difference {
		d.VSUBPS(own, v, v)
	}
	d.VMOVUPS(v, d.offset("dst", at*floatSize))
	if !d.difference {
		return
	}
	d.VMULPS(d.inverse, v, own)
	d.VMULPS(own, own, own)
	d.VADDPS(own, d.squares.acc[i], d.squares.acc[i])
	lane{routine: d.routine}.and(d.mask, v)
	d.VPMAXUD(v, d.peak.acc[0], d.peak.acc[0])
}
