package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mask returns the mask of a row's last vector.
func (t *tile) mask() reg.Register {
	if t.width == widthZ {
		k := t.K()
		t.KMOVW(t.p.at("Bits"), k)
		return k
	}
	from, v := t.p.load("Mask"), t.register(t.width)
	t.VMOVUPS(operand.Mem{Base: from}, v)
	return v
}

func (t *tile) maskedLoad(from operand.Mem, mask, v reg.Register) {
	if t.width == widthZ {
		t.VMOVUPS_Z(from, mask, v)
	} else {
		t.VMASKMOVPS(from, mask, v)
	}
}

func (t *tile) maskedStore(v, mask reg.Register, to operand.Mem) {
	if t.width == widthZ {
		t.VMOVUPS(v, mask, to)
	} else {
		t.VMASKMOVPS(v, mask, to)
	}
}

// finish writes the sums of a tile to C, and advances to the next tile.
func (t *tile) finish(rows int, acc []reg.VecVirtual) {
	alpha, c := t.register(t.width), t.GP64()
	t.VBROADCASTSS(t.p.at("Alpha"), alpha)
	t.MOVQ(t.c, c)
	word := t.GP32()
	t.MOVL(t.p.at("Beta"), word)
	t.ADDL(word, word) // zero of either sign becomes zero
	t.JZ(operand.LabelRef(label("overwrite", rows)))
	beta := t.register(t.width)
	t.VBROADCASTSS(t.p.at("Beta"), beta)
	t.maskedOrNot(c, rows, "add", acc, func(i int, load func(v reg.Register)) reg.VecVirtual {
		v := t.register(t.width)
		load(v)
		t.VMULPS(beta, v, v)
		t.VFMADD231PS(alpha, acc[i], v)
		return v
	})
	t.Label(label("overwrite", rows))
	t.maskedOrNot(c, rows, "set", acc, func(i int, _ func(v reg.Register)) reg.VecVirtual {
		t.VMULPS(alpha, acc[i], acc[i])
		return acc[i]
	})
	t.Label(label("advance", rows))
	offset := t.GP64()
	t.IMUL3Q(operand.U8(rows), t.rowStep, offset)
	t.ADDQ(offset, t.a)
	t.MOVQ(c, t.c)
	t.SUBQ(operand.U32(rows), t.left)
	t.JZ(operand.LabelRef("done"))
}

// maskedOrNot writes all vectors of C that result gives, which may load what is
// there, and jumps to what follows. In AVX2 a masked store is slow, so that there
// is a way without.
func (t *tile) maskedOrNot(c reg.GPVirtual, rows int, name string, acc []reg.VecVirtual, result func(i int, load func(v reg.Register)) reg.VecVirtual) {
	if t.width == widthZ {
		mask := t.mask()
		t.write(c, acc, mask, result)
		t.JMP(operand.LabelRef(label("advance", rows)))
		return
	}
	full := label(name+"_full", rows)
	t.CMPQ(t.p.at("Masked"), operand.U8(0))
	t.JE(operand.LabelRef(full))
	t.write(c, acc, t.mask(), result)
	t.JMP(operand.LabelRef(label("advance", rows)))
	t.Label(full)
	t.write(c, acc, nil, result)
	t.JMP(operand.LabelRef(label("advance", rows)))
}

func (t *tile) write(c reg.GPVirtual, acc []reg.VecVirtual, mask reg.Register, result func(i int, load func(v reg.Register)) reg.VecVirtual) {
	step := t.p.load("CStep")
	for i := range acc {
		j := i % t.k.vectors
		at := operand.Mem{Base: c, Disp: j * t.width}
		if masked := mask != nil && j == t.k.vectors-1; masked {
			t.maskedStore(result(i, func(v reg.Register) { t.maskedLoad(at, mask, v) }), mask, at)
		} else {
			t.VMOVUPS(result(i, func(v reg.Register) { t.VMOVUPS(at, v) }), at)
		}
		if j == t.k.vectors-1 {
			t.ADDQ(step, c)
		}
	}
}
