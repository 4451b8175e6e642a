package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// eachPixel emits body for all rows and pixels of argument c, with the channels of
// a pixel left; done and rowDone follow a pixel and a row.
func eachPixel(r *routine, body func(), done, rowDone func()) {
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

// maxPool emits the largest of each four pixels; with places, where it was.
func maxPool(withPlaces bool) func(*routine) {
	return func(r *routine) {
		q := r.quad("x")
		number := numbers(r, withPlaces)
		eachPixel(r, func() {
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
func numbers(r *routine, wanted bool) (n [4]reg.VecVirtual) {
	if wanted {
		for i := range n {
			n[i] = r.bits(uint32(i))
		}
	}
	return n
}

// maxPoolGradient emits the way back: each value goes to its place of four pixels,
// and zeros to the others.
func maxPoolGradient(r *routine) {
	q := r.quad("dst")
	number := numbers(r, true)
	eachPixel(r, func() {
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
