package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockLen is the number of values in a block. Kernels with checksums walk its
// quarters in turn.
const (
	blockLen = 1024
	quarters = 4
	quarter  = blockLen / quarters
)

// offset is the memory so many bytes beyond the next value of a stream.
func (r *routine) offset(name string, bytes int) operand.Mem {
	return operand.Mem{Base: r.stream(name).next, Disp: bytes}
}

// ahead is how many bytes beyond what a kernel works on it asks memory for.
const ahead = 2 * blockLen * floatSize

// fetch asks for the lines of so many bytes of a stream that will be needed soon.
func (r *routine) fetch(name string, at, bytes int) { r.fetchAt(name, at+ahead, bytes) }

func (r *routine) fetchAt(name string, at, bytes int) {
	for ; bytes > 0; at, bytes = at+lineSize, bytes-lineSize {
		r.PREFETCHT0(r.offset(name, at))
	}
}

// fetchFrom returns what emits a fetch of the next bytes, one line after the other
// whatever the order in which quarters are worked on: memory is faster that way.
func (r *routine) fetchFrom(name string) func(bytes int) {
	soon := &stream{name: name, next: r.GP64(), size: floatSize}
	r.MOVQ(r.stream(name).next, soon.next)
	return func(bytes int) {
		for at := 0; at < bytes; at += lineSize {
			r.PREFETCHT0(operand.Mem{Base: soon.next, Disp: ahead + at})
		}
		r.ADDQ(operand.U32(bytes), soon.next)
	}
}

// codeAhead is ahead for streams of codes.
const codeAhead = 2 * blockLen

// count emits body so many times in a loop; body advances the streams.
func (r *routine) count(label string, times int, body func()) {
	left := r.GP64()
	r.MOVQ(operand.U64(uint64(times)), left)
	r.Label(label)
	body()
	r.DECQ(left)
	r.JNZ(operand.LabelRef(label))
}

// wordArgument fills a register of the level's width with a uint32 argument.
func (r *routine) wordArgument(name string) reg.VecVirtual {
	word, v := r.GP32(), r.register(r.width)
	r.Load(r.Param(name), word)
	r.VMOVD(word, v.AsX())
	r.VPBROADCASTD(v.AsX(), v)
	return v
}

// or emits b = a | b, as and does.
func (r *routine) or(a operand.Op, b reg.Register) {
	if b.Size() == widthZ {
		r.VPORD(a, b, b)
	} else {
		r.VPOR(a, b, b)
	}
}

// lowBytes writes the lowest bytes of the 32-bit values of two vectors, which it
// changes: with 512 bits at once, and else every second time those of four vectors,
// of which it keeps the first two in packed.
func (r *routine) lowBytes(v [2]reg.VecVirtual, packed *reg.VecVirtual, mask, order reg.VecVirtual, to func(bytes int) operand.Mem) {
	if r.width == widthZ {
		for i := range v {
			r.VPMOVDB(v[i], to(i*r.floats()))
		}
		return
	}
	for i := range v {
		r.VPAND(mask, v[i], v[i])
	}
	r.VPACKUSDW(v[1], v[0], v[0])
	if *packed == nil {
		*packed = v[0]
		return
	}
	r.VPACKUSWB(v[0], *packed, v[0])
	r.VPERMD(v[0], order, v[0])
	r.VMOVUPS(v[0], to(0))
	*packed = nil
}

// group is how many values lowBytes takes in one or two times.
const group = 32

// order is what puts 32-bit words back in order that packing four registers to bytes
// leaves in disorder, since it works on each 128 bits for itself.
func (r *routine) order() reg.VecVirtual {
	v := r.register(r.width)
	if r.width == widthY {
		r.words(0x07_03_06_02_05_01_04_00, v.AsX())
	} else {
		upper := r.XMM()
		r.words(0x0d_09_05_01_0c_08_04_00, v.AsX())
		r.words(0x0f_0b_07_03_0e_0a_06_02, upper)
		r.VPUNPCKLQDQ(upper, v.AsX(), v.AsX())
	}
	r.VPMOVZXBD(v.AsX(), v)
	return v
}

// words fills the low half of v.
func (r *routine) words(bytes uint64, v reg.Register) {
	general := r.GP64()
	r.MOVQ(operand.U64(bytes), general)
	r.VMOVQ(general, v)
}
