package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockLen is the number of values in a block. Kernels with checksums walk its
// quarters in turn.
const (
	blockLen = 512
	quarters = 4
	quarter  = blockLen / quarters
)

// offset is the memory so many bytes beyond the next value of a stream.
func (r *routine) offset(name string, bytes int) operand.Mem {
	return operand.Mem{Base: r.stream(name).next, Disp: bytes}
}

// count emits body so many times in a loop; body advances the streams.
func (r *routine) count(label string, times int, body func()) {
	left := r.GP64()
	r.MOVQ(operand.U64(uint64(times)), left)
	r.Label(label)
	body()
	r.DECQ(left)
	r.JNZ(operand.LabelRef(label))
}

// bytes fills a register of the level's width with a byte argument.
func (r *routine) byteArgument(name string) reg.VecVirtual {
	word, v := r.GP32(), r.register(r.width)
	r.Load(r.Param(name), word)
	r.VMOVD(word, v.AsX())
	r.VPBROADCASTB(v.AsX(), v)
	return v
}

// countArgument is an int argument as the count of a shift.
func (r *routine) countArgument(name string) reg.VecVirtual {
	word, v := r.GP64(), r.XMM()
	r.Load(r.Param(name), word)
	r.VMOVQ(word, v)
	return v
}

// perByte repeats a byte in a 32-bit word.
func perByte(b uint32) uint32 { return b * 0x01010101 }

// or emits b = a | b, as and does.
func (r *routine) or(a operand.Op, b reg.Register) {
	if b.Size() == widthZ {
		r.VPORD(a, b, b)
	} else {
		r.VPOR(a, b, b)
	}
}

// planes emits body for each width of a plane, of which the argument picks one.
func (r *routine) planes(body func(width int)) {
	width := r.GP64()
	r.Load(r.Param("width"), width)
	r.CMPQ(width, operand.U8(2))
	r.JEQ(operand.LabelRef("plane2"))
	r.JA(operand.LabelRef("plane4"))
	body(1)
	r.close()
	r.Label("plane2")
	body(2)
	r.close()
	r.Label("plane4")
	body(4)
	r.close()
}

func pack(r *routine) {
	at := r.countArgument("at")
	r.planes(func(width int) {
		size, mask := blockLen*width/8, r.bits(perByte(1<<width-1))
		for j := 0; j < size; j += r.width {
			all := r.register(r.width)
			for k := range 8 / width {
				v := all
				if k > 0 {
					v = r.register(r.width)
				}
				r.VMOVUPS(r.offset("values", j+k*size), v)
				r.VPSRLW(at, v, v)
				lane{routine: r}.and(mask, v)
				if k > 0 {
					r.VPSLLW(operand.U8(k*width), v, v)
					r.or(v, all)
				}
			}
			r.VMOVUPS(all, r.offset("code", j))
		}
	})
}

func unpack(r *routine) {
	at, flip, minus := r.countArgument("at"), r.byteArgument("flip"), r.byteArgument("minus")
	r.planes(func(width int) {
		size, mask := blockLen*width/8, r.bits(perByte(1<<width-1))
		for j := 0; j < size; j += r.width {
			all := r.register(r.width)
			r.VMOVUPS(r.offset("code", j), all)
			for k := range 8 / width {
				v, to := r.register(r.width), r.offset("values", j+k*size)
				if k == 0 {
					r.VMOVUPS(all, v)
				} else {
					r.VPSRLW(operand.U8(k*width), all, v)
				}
				lane{routine: r}.and(mask, v)
				r.VPSLLW(at, v, v)
				r.or(to, v)
				lane{routine: r}.xor(flip, v)
				r.VPSUBB(minus, v, v)
				r.VMOVUPS(v, to)
			}
		}
	})
}

// lowBytes writes the lowest bytes of four vectors of 32-bit values, which it
// changes, or of two vectors of 512 bits, to a stream.
func (r *routine) lowBytes(v []reg.VecVirtual, mask, order reg.VecVirtual, to func(vector int) operand.Mem) {
	if r.width == widthZ {
		for i := range v {
			r.VPMOVDB(v[i], to(i))
		}
		return
	}
	for i := range v {
		r.VPAND(mask, v[i], v[i])
	}
	r.VPACKUSDW(v[1], v[0], v[0])
	r.VPACKUSDW(v[3], v[2], v[2])
	r.VPACKUSWB(v[2], v[0], v[0])
	r.VPERMD(v[0], order, v[0])
	r.VMOVUPS(v[0], to(0))
}

// group is how many values lowBytes takes.
const group = 32

// order is what puts the quarters back that packing four registers to bytes leaves in
// disorder, since it works on each 128 bits for itself.
func (r *routine) order() reg.VecVirtual {
	word, v := r.GP64(), r.YMM()
	r.MOVQ(operand.U64(0x07_03_06_02_05_01_04_00), word)
	r.VMOVQ(word, v.AsX())
	r.VPMOVZXBD(v.AsX(), v)
	return v
}
