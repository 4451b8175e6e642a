package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Sizes of values, in bytes.
const (
	halfSize   = 2
	floatSize  = 4
	doubleSize = 8
)

// lane is where a body works: the values of one vector, or a single one. A
// single value sits in the lowest place of an XMM register whose other places
// are zero, so that the same packed instructions serve both.
type lane struct {
	*routine
	index  int // of the lane in its loop
	values int
	skip   int  // values of the loop's other lanes before it
	past   bool // stores go past the cache
}

func (l lane) single() bool { return l.values == 1 }

// at is the memory of the lane's values in s.
func (l lane) at(s *stream) operand.Mem {
	return operand.Mem{Base: s.next, Disp: l.skip * s.size}
}

// vector returns a register for the lane's values at so many bytes each.
func (l lane) vector(size int) reg.VecVirtual { return l.register(l.values * size) }

// see returns the part of v, a register of the level's width, that lines up
// with the lane's values at so many bytes each.
func (l lane) see(v reg.VecVirtual, size int) reg.Register { return view(v, l.values*size) }

// load returns the lane's float32 values of a stream.
func (l lane) load(name string) reg.VecVirtual {
	v, from := l.vector(floatSize), l.at(l.stream(name))
	if l.single() {
		l.VMOVSS(from, v)
	} else {
		l.VMOVUPS(from, v)
	}
	return v
}

// store writes the lane's float32 values to a stream.
func (l lane) store(v reg.Register, name string) {
	to := l.at(l.stream(name))
	if l.single() {
		l.VMOVSS(v, to)
	} else {
		l.put(v, to)
	}
}

// put writes a register to memory, which is aligned if the lane writes past the
// cache.
func (l lane) put(v reg.Register, to operand.Mem) {
	if l.past {
		l.VMOVNTPS(v, to)
	} else {
		l.VMOVUPS(v, to)
	}
}

// doubles returns the lane's float32 values of a stream as float64.
func (l lane) doubles(name string) reg.VecVirtual {
	v, from := l.vector(doubleSize), l.at(l.stream(name))
	if l.single() {
		l.VMOVSS(from, v)
		l.VCVTPS2PD(v, v)
	} else {
		l.VCVTPS2PD(from, v)
	}
	return v
}

// halves returns the lane's 16-bit values of a stream, each in 32 bits.
func (l lane) halves(name string) reg.VecVirtual {
	v, from := l.vector(floatSize), l.at(l.stream(name))
	if l.single() {
		l.loadHalf(from, v)
	} else {
		l.VPMOVZXWD(from, v)
	}
	return v
}

// loadHalf loads 16 bits and clears the rest.
func (l lane) loadHalf(from operand.Mem, v reg.Register) {
	word := l.GP32()
	l.MOVWLZX(from, word)
	l.VMOVD(word, v)
}

// and emits b = a & b on all bits: with 512 bits, AVX-512 has other names for it.
func (l lane) and(a operand.Op, b reg.Register) {
	if b.Size() == widthZ {
		l.VPANDD(a, b, b)
	} else {
		l.VPAND(a, b, b)
	}
}

// xor emits b = a ^ b, as and does.
func (l lane) xor(a operand.Op, b reg.Register) {
	if b.Size() == widthZ {
		l.VPXORD(a, b, b)
	} else {
		l.VPXOR(a, b, b)
	}
}
