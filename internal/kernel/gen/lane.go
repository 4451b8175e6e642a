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

// moveTo writes a lane's values to memory.
func (l lane) moveTo(v reg.VecVirtual, to operand.Mem) {
	if l.single() {
		l.VMOVSS(v, to)
	} else {
		l.VMOVUPS(v, to)
	}
}

// multiplyAdd adds the lane's values at an address times v to sum.
func (l lane) multiplyAdd(at operand.Mem, v, sum reg.VecVirtual) {
	if l.single() {
		l.VFMADD231SS(at, v, sum)
	} else {
		l.VFMADD231PS(at, v, sum)
	}
}

// rectified returns v with its negative values replaced by 0. The order of the
// operands keeps NaN.
func (l lane) rectified(v, zero reg.VecVirtual) reg.VecVirtual {
	l.VMAXPS(v, l.see(zero, floatSize), v)
	return v
}

// shut clears the values of v where those of out are not positive. (Where out is
// NaN they stay.)
func (l lane) shut(v, out, zero reg.VecVirtual) {
	closed := l.see(zero, floatSize)
	if v.Size() == widthZ {
		open := l.K()
		l.VCMPPS(operand.U8(notLessOrEqual), closed, out, open)
		l.VMOVAPS_Z(v, open, v)
		return
	}
	open := l.vector(floatSize)
	l.VCMPPS(operand.U8(notLessOrEqual), closed, out, open)
	l.VPAND(open, v, v)
}

// signs returns -1, 0 or 1 for each value of v, and NaN where it is not finite.
func (l lane) signs(v, sign, one, zero reg.VecVirtual) reg.VecVirtual {
	signs, rest := l.vector(floatSize), l.vector(floatSize)
	l.VMOVAPS(v, signs)
	l.and(l.see(sign, floatSize), signs)
	l.or(l.see(one, floatSize), signs)
	if none := l.see(zero, floatSize); v.Size() == widthZ {
		some := l.K()
		l.VCMPPS(operand.U8(notEqual), none, v, some)
		l.VMOVAPS_Z(signs, some, signs)
	} else {
		some := l.vector(floatSize)
		l.VCMPPS(operand.U8(notEqual), none, v, some)
		l.VPAND(some, signs, signs)
	}
	l.VSUBPS(v, v, rest) // 0, or NaN of what is not finite
	l.VADDPS(rest, signs, signs)
	return signs
}

func (l lane) loadDoubles(name string, v reg.Register) {
	if from := l.at(l.stream(name)); l.single() {
		l.VMOVSD(from, v)
	} else {
		l.VMOVUPD(from, v)
	}
}

func (l lane) storeDoubles(v reg.Register, name string) {
	if to := l.at(l.stream(name)); l.single() {
		l.VMOVSD(v, to)
	} else {
		l.VMOVUPD(v, to)
	}
}

// narrowed returns doubles as float32.
func (l lane) narrowed(v reg.Register) reg.VecVirtual {
	narrow := l.vector(floatSize)
	switch v.Size() {
	case widthZ:
		l.VCVTPD2PS(v, narrow)
	case widthY:
		l.VCVTPD2PSY(v, narrow)
	default:
		l.VCVTPD2PSX(v, narrow)
	}
	return narrow
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

// times returns a*v without changing v.
func (l lane) times(a, v reg.VecVirtual) reg.VecVirtual {
	product := l.vector(floatSize)
	l.VMULPS(l.see(a, floatSize), v, product)
	return product
}

// velocityOf emits what both kinds of momentum share: it stores the new velocity
// and returns it with the decayed gradient.
func (l lane) velocityOf(momentum, decay reg.VecVirtual) (velocity, grad reg.VecVirtual) {
	grad = l.load("grad")
	pull := l.times(decay, l.load("x"))
	l.VADDPS(pull, grad, grad)
	velocity = l.times(momentum, l.load("velocity"))
	l.VADDPS(grad, velocity, velocity)
	l.stored(velocity, "velocity")
	return velocity, grad
}

// bf16Values returns the lane's bfloat16 values as float32.
func (l lane) bf16Values() reg.VecVirtual {
	v := l.halves("code")
	l.VPSLLD(operand.U8(upperHalf), v, v)
	return v
}
