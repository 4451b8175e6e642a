package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// register returns a new register of so many bytes, at least those of an XMM.
func (r *routine) register(bytes int) reg.VecVirtual {
	switch {
	case bytes <= widthX:
		return r.XMM()
	case bytes == widthY:
		return r.YMM()
	default:
		return r.ZMM()
	}
}

// view returns the low bytes of v as a register of that size.
func view(v reg.VecVirtual, bytes int) reg.Register {
	switch {
	case bytes <= widthX:
		return v.AsX()
	case bytes == widthY:
		return v.AsY()
	default:
		return v.AsZ()
	}
}

// bits fills a register of the level's width with a 32-bit word.
func (r *routine) bits(word uint32) reg.VecVirtual {
	general, v := r.GP32(), r.register(r.width)
	r.MOVL(operand.U32(word), general)
	r.VMOVD(general, v.AsX())
	r.VPBROADCASTD(v.AsX(), v)
	return v
}

// argument fills a register of the level's width with a float32 argument, or
// with a field of an argument.
func (r *routine) argument(name string, field ...string) reg.VecVirtual {
	component := r.Param(name)
	for _, f := range field {
		component = component.Field(f)
	}
	v := r.register(r.width)
	if basic, err := component.Resolve(); err != nil {
		r.faults = append(r.faults, err)
	} else {
		r.VBROADCASTSS(basic.Addr, v)
	}
	return v
}

// zero returns a register of the level's width that is all zeros.
func (r *routine) zero() reg.VecVirtual {
	v := r.register(r.width)
	r.VPXOR(v.AsX(), v.AsX(), v.AsX()) // clears the upper part too
	return v
}
