package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumPlaces are the sums that a sum along a row has, whatever the width of a register:
// value i is added to the one at i modulo their number. Rows are walked through in as
// many values at a time; the rest is masked, so that its instructions are the same.
const sumPlaces = 16

// walk is how a routine walks along rows: by an index that serves all of them.
type walk struct {
	*routine
	index, left, mask reg.GPVirtual
}

func (r *routine) walk() *walk {
	return &walk{routine: r, index: r.GP64(), left: r.GP64(), mask: r.GP64()}
}

// part is a register's worth of the values that a walk works on at a time.
type part struct {
	*walk
	number int         // among the parts of as many values as there are places
	some   reg.Virtual // the mask, if there is one
}

// along emits body for count values.
func (w *walk) along(label string, count operand.Op, body func(part)) {
	w.XORQ(w.index, w.index)
	w.MOVQ(count, w.left)
	w.CMPQ(w.left, operand.U32(sumPlaces))
	w.JB(operand.LabelRef(label + "_rest"))
	w.Label(label)
	for i := range sumPlaces / w.floats() {
		body(part{walk: w, number: i})
	}
	w.ADDQ(operand.U32(sumPlaces*floatSize), w.index)
	w.SUBQ(operand.U32(sumPlaces), w.left)
	w.CMPQ(w.left, operand.U32(sumPlaces))
	w.JAE(operand.LabelRef(label))
	w.Label(label + "_rest")
	w.TESTQ(w.left, w.left)
	w.JZ(operand.LabelRef(label + "_done"))
	w.rest(body)
	w.Label(label + "_done")
}

// rest emits body for what is left.
func (w *walk) rest(body func(part)) {
	if w.width == widthZ {
		some := w.K()
		w.MOVQ(operand.U32(1<<sumPlaces-1), w.mask)
		w.SHLXQ(w.left, w.mask, w.mask)
		w.SHRQ(operand.U8(sumPlaces), w.mask)
		w.KMOVW(w.mask.As32(), some)
		body(part{walk: w, some: some})
		return
	}
	w.table.masks = true
	w.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(masksName), sumPlaces*floatSize), w.mask)
	w.SHLQ(operand.U8(log2(floatSize)), w.left)
	w.SUBQ(w.left, w.mask)
	for i := range sumPlaces / w.floats() {
		some := w.YMM()
		w.VMOVUPS(operand.Mem{Base: w.mask, Disp: i * w.width}, some)
		body(part{walk: w, number: i, some: some})
	}
}

// at is the memory of the part's values in the row that begins at an address.
func (p part) at(row reg.GPVirtual) operand.Mem {
	return operand.Mem{Base: row, Index: p.index, Scale: 1, Disp: p.number * p.width}
}

// vector returns a new register.
func (p part) vector() reg.VecVirtual { return p.register(p.width) }

// load returns the part's values, with 0 in place of those that are not there.
func (p part) load(row reg.GPVirtual) reg.VecVirtual {
	v := p.vector()
	switch {
	case p.some == nil:
		p.VMOVUPS(p.at(row), v)
	case p.width == widthZ:
		p.VMOVUPS_Z(p.at(row), p.some, v)
	default:
		p.VMASKMOVPS(p.at(row), p.some, v)
	}
	return v
}

func (p part) store(v reg.VecVirtual, row reg.GPVirtual) {
	switch {
	case p.some == nil:
		p.VMOVUPS(v, p.at(row))
	case p.width == widthZ:
		p.VMOVUPS(v, p.some, p.at(row))
	default:
		p.VMASKMOVPS(v, p.some, p.at(row))
	}
}

// fill puts a constant in place of values that are not there.
func (p part) fill(v reg.VecVirtual, constant operand.Mem) {
	switch {
	case p.some == nil:
	case p.width == widthZ:
		p.VBLENDMPS(v, p.filled(constant), p.some, v)
	default:
		p.VBLENDVPS(p.some, v, p.filled(constant), v)
	}
}

func (p part) filled(constant operand.Mem) reg.VecVirtual {
	v := p.vector()
	p.VMOVUPS(constant, v)
	return v
}

// doubles returns the part's values as float64, in two registers.
func (p part) doubles(v reg.VecVirtual) [2]reg.VecVirtual {
	low, high := p.vector(), p.vector()
	if p.width == widthZ {
		p.VCVTPS2PD(v.AsY(), low)
		upper := p.YMM()
		p.VEXTRACTF64X4(operand.U8(1), v, upper)
		p.VCVTPS2PD(upper, high)
	} else {
		p.VCVTPS2PD(v.AsX(), low)
		upper := p.XMM()
		p.VEXTRACTF128(operand.U8(1), v, upper)
		p.VCVTPS2PD(upper, high)
	}
	return [2]reg.VecVirtual{low, high}
}

// placeSum is a float64 sum of each place.
type placeSum struct{ *reduction }

func (r *routine) placeSum() placeSum {
	return placeSum{r.reduce(func(a, b, c operand.Op) { r.VADDPD(a, b, c) }, doubleSize, sumPlaces/(r.width/doubleSize))}
}

func (s placeSum) clear() {
	for _, a := range s.acc {
		s.VXORPS(a.AsX(), a.AsX(), a.AsX())
	}
}

// add adds doubles of a part.
func (s placeSum) add(p part, d [2]reg.VecVirtual) {
	for i, v := range d {
		acc := s.acc[2*p.number+i]
		s.VADDPD(v, acc, acc)
	}
}

// addProducts adds the products of doubles, which are exact.
func (s placeSum) addProducts(p part, a, b [2]reg.VecVirtual) {
	for i, v := range a {
		s.VFMADD231PD(v, b[i], s.acc[2*p.number+i])
	}
}

// total adds the places up, in the lowest place of a register.
func (s placeSum) total() reg.Register {
	s.fold()
	return s.finish()
}

// everywhere rounds a float64 and puts it in all places.
func (r *routine) everywhere(double reg.Register) reg.VecVirtual {
	v := r.register(r.width)
	r.VCVTSD2SS(double, double, v.AsX())
	r.VBROADCASTSS(v.AsX(), v)
	return v
}
