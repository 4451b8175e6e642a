package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// eachPixel emits body for all rows and pixels of argument c, with the channels of
// a pixel left; done and rowDone follow a pixel and a row.
func (r *routine) eachPixel(body func(), done, rowDone func()) {
	cols := r.GP64()
	r.left = r.GP64()
	r.Label("row")
	r.MOVQ(r.field("cols"), cols)
	r.Label("pixel")
	r.MOVQ(r.field("channels"), r.left)
	body()
	done()
	r.DECQ(cols)
	r.JNZ(operand.LabelRef("pixel"))
	rowDone()
	r.DECQ(r.field("rows"))
	r.JNZ(operand.LabelRef("row"))
	r.close()
}

// quad is where the four pixels are that pooling makes one of.
type quad struct{ base, pixel, line, both reg.GPVirtual }

func (r *routine) quad(name string) quad {
	q := quad{base: r.stream(name).next, pixel: r.GP64(), line: r.GP64(), both: r.GP64()}
	r.MOVQ(r.field("channels"), q.pixel)
	r.SHLQ(operand.U8(2), q.pixel)
	r.MOVQ(r.field("line"), q.line)
	r.LEAQ(operand.Mem{Base: q.pixel, Index: q.line, Scale: 1}, q.both)
	return q
}

// of is the memory of a lane's values in the four pixels, in reading order.
func (q quad) of(l lane) [4]operand.Mem {
	at := operand.Mem{Base: q.base, Disp: l.skip * floatSize}
	return [4]operand.Mem{at, at.Idx(q.pixel, 1), at.Idx(q.line, 1), at.Idx(q.both, 1)}
}

func (l lane) move(from operand.Mem) reg.VecVirtual {
	v := l.vector(floatSize)
	if l.single() {
		l.VMOVSS(from, v)
	} else {
		l.VMOVUPS(from, v)
	}
	return v
}

// maxPool emits the largest of each four pixels; with places, where it was.
func maxPool(withPlaces bool) func(*routine) {
	return func(r *routine) {
		q := r.quad("x")
		number := r.numbers(withPlaces)
		r.eachPixel(func() {
			r.columns(1, func(l lane) {
				at := q.of(l)
				best := l.move(at[0])
				var place reg.VecVirtual
				if withPlaces {
					place = l.vector(floatSize)
					l.clear(place)
				}
				for i := 1; i < len(at); i++ {
					v := l.move(at[i])
					if withPlaces {
						l.replaceWhereGreater(v, best, number[i], place)
					}
					l.VMAXPS(best, v, best) // best unless v is greater
				}
				l.store(best, "dst")
				if withPlaces {
					l.storeBytes(place, "places")
				}
			})
		}, func() { r.ADDQ(q.pixel, q.base) }, func() { r.ADDQ(r.field("xNext"), q.base) })
	}
}

// numbers are registers that hold 0, 1, 2 and 3 in all places.
func (r *routine) numbers(wanted bool) (n [4]reg.VecVirtual) {
	if wanted {
		for i := range n {
			n[i] = r.bits(uint32(i))
		}
	}
	return n
}

// clear sets a register to zero. Of the instructions that do, this one knows all
// registers of AVX-512.
func (l lane) clear(v reg.VecVirtual) { l.VXORPS(v, v, v) }

// replaceWhereGreater sets place to number where v is greater than best.
func (l lane) replaceWhereGreater(v, best, number, place reg.VecVirtual) {
	n := l.see(number, floatSize)
	if v.Size() == widthZ {
		mask := l.K()
		l.VCMPPS(operand.U8(greater), best, v, mask)
		l.VMOVDQA32(n, mask, place)
		return
	}
	mask := l.vector(floatSize)
	l.VCMPPS(operand.U8(greater), best, v, mask)
	l.VPBLENDVB(mask, n, place, place)
}

// storeBytes writes the low byte of each 32 bits to a stream of bytes.
func (l lane) storeBytes(v reg.VecVirtual, name string) {
	to := l.at(l.stream(name))
	switch {
	case l.single():
		l.VPEXTRB(operand.U8(0), v.AsX(), to)
	case v.Size() == widthZ:
		low := l.XMM()
		l.VPMOVDB(v, low)
		l.VMOVDQU(low, to)
	default:
		upper := l.XMM()
		l.VEXTRACTI128(operand.U8(1), v, upper)
		l.VPACKUSDW(upper, v.AsX(), upper)
		l.VPACKUSWB(upper, upper, upper)
		l.VMOVQ(upper, to)
	}
}

// loadBytes returns the bytes of a stream, each in 32 bits.
func (l lane) loadBytes(name string) reg.VecVirtual {
	v, from := l.vector(floatSize), l.at(l.stream(name))
	if l.single() {
		word := l.GP32()
		l.MOVBLZX(from, word)
		l.VMOVD(word, v)
	} else {
		l.VPMOVZXBD(from, v)
	}
	return v
}

// maxPoolGradient emits the way back: each value goes to its place of four pixels,
// and zeros to the others.
func maxPoolGradient(r *routine) {
	q := r.quad("dst")
	number := r.numbers(true)
	r.eachPixel(func() {
		r.columns(1, func(l lane) {
			x, place := l.load("x"), l.loadBytes("places")
			for i, at := range q.of(l) {
				v := l.vector(floatSize)
				if n := l.see(number[i], floatSize); v.Size() == widthZ {
					here := l.K()
					l.VPCMPEQD(n, place, here)
					l.VMOVAPS_Z(x, here, v)
				} else {
					l.VPCMPEQD(n, place, v)
					l.VPAND(x, v, v)
				}
				if l.single() {
					l.VMOVSS(v, at)
				} else {
					l.VMOVUPS(v, at)
				}
			}
		})
	}, func() { r.ADDQ(q.pixel, q.base) }, func() { r.ADDQ(r.field("xNext"), q.base) })
}
