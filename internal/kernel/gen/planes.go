package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// plane is one part of the code of numbers of some bits.
type plane struct {
	width int // bits of each number
	from  int // where its bytes begin
	size  int // bytes
	at    int // the lowest of its bits in a number
}

// planesOf are those of a whole block of numbers of less than 8 bits.
func planesOf(number int) []plane {
	var all []plane
	next := plane{}
	for number > 0 {
		next.width = 1 << (bits.Len(uint(number)) - 1)
		next.size = blockLen * next.width / 8
		all = append(all, next)
		next.from += next.size
		next.at += next.width
		number -= next.width
	}
	return all
}

// each picks the body of the number of bits that is asked for; the last is that of
// any other.
func eachBits(r *routine, list []int, body func(number int)) {
	asked := r.GP64()
	r.Load(r.Param("bits"), asked)
	label := func(number int) operand.LabelRef { return operand.LabelRef(fmt.Sprintf("bits%d", number)) }
	for _, number := range list[:len(list)-1] {
		r.CMPQ(asked, operand.U8(number))
		r.JEQ(label(number))
	}
	for i := range list {
		number := list[len(list)-1-i]
		r.Label(string(label(number)))
		body(number)
		r.close()
	}
}

// perByte repeats a byte in all of a register.
func (r *routine) perByte(b uint32) reg.VecVirtual { return r.bits(b * 0x01010101) }

func packBits(r *routine) {
	eachBits(r, []int{6, 4, 5, 3, 2, 1}, func(number int) {
		r.fetchAt("code", codeAhead, blockLen*number/8)
		for _, p := range planesOf(number) {
			mask := r.perByte(1<<p.width - 1)
			for j := 0; j < p.size; j += r.width {
				var all reg.VecVirtual
				for k := range 8 / p.width {
					v := r.register(r.width)
					r.VMOVUPS(r.offset("values", j+k*p.size), v)
					if p.at > 0 {
						r.VPSRLW(operand.U8(p.at), v, v)
					}
					lane{routine: r}.and(mask, v)
					if k == 0 {
						all = v
						continue
					}
					r.VPSLLW(operand.U8(k*p.width), v, v)
					r.or(v, all)
				}
				r.VMOVUPS(all, r.offset("code", p.from+j))
			}
		}
	})
}

func unpackBits(r *routine) {
	eachBits(r, []int{6, 4, 5, 3, 2, 1}, func(number int) {
		unpack(r, number, func(reg.VecVirtual) {})
	})
}

func unpackSteps(r *routine) {
	eachBits(r, []int{4, 3, 1}, func(number int) {
		if number == 1 { // 0 and 1 stand for 1 and -1
			one := r.perByte(1)
			unpack(r, number, func(v reg.VecVirtual) {
				r.VPADDB(v, v, v)
				r.VPSUBB(v, one, v)
			})
			return
		}
		sign := r.perByte(1 << (number - 1))
		unpack(r, number, func(v reg.VecVirtual) {
			lane{routine: r}.xor(sign, v)
			r.VPSUBB(sign, v, v)
		})
	})
}

// unpack writes all numbers, each after what last does to it.
func unpack(r *routine, number int, last func(v reg.VecVirtual)) {
	planes := planesOf(number)
	r.fetchAt("code", codeAhead, blockLen*number/8)
	var masks []reg.VecVirtual
	for _, p := range planes {
		masks = append(masks, r.perByte((1<<p.width-1)<<p.at))
	}
	for i := 0; i < blockLen; i += r.width {
		var all reg.VecVirtual
		for n, p := range planes {
			v, j, k := r.register(r.width), i%p.size, i/p.size
			r.VMOVUPS(r.offset("code", p.from+j), v)
			switch shift := k*p.width - p.at; {
			case shift > 0:
				r.VPSRLW(operand.U8(shift), v, v)
			case shift < 0:
				r.VPSLLW(operand.U8(-shift), v, v)
			}
			lane{routine: r}.and(masks[n], v)
			if n == 0 {
				all = v
			} else {
				r.or(v, all)
			}
		}
		last(all)
		r.VMOVUPS(all, r.offset("values", i))
	}
}
