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

// output is how a tile's sums get into C.
type output struct {
	c           reg.GPVirtual  // the next row
	alpha, beta reg.VecVirtual // no beta: what is there is overwritten
}

// finish writes the sums of a tile to C, and advances to the next tile.
func (t *tile) finish(rows int, acc []reg.VecVirtual) {
	out := output{c: t.GP64(), alpha: t.register(t.width)}
	t.VBROADCASTSS(t.p.at("Alpha"), out.alpha)
	t.MOVQ(t.c, out.c)
	word := t.GP32()
	t.MOVL(t.p.at("Beta"), word)
	t.ADDL(word, word) // zero of either sign becomes zero
	t.JZ(operand.LabelRef(label("overwrite", rows)))
	out.beta = t.register(t.width)
	t.VBROADCASTSS(t.p.at("Beta"), out.beta)
	t.maskedOrNot(rows, "add", acc, out)
	t.Label(label("overwrite", rows))
	out.beta = nil
	t.maskedOrNot(rows, "set", acc, out)
	t.Label(label("advance", rows))
	offset := t.GP64()
	t.IMUL3Q(operand.U8(rows), t.rowStep, offset)
	t.ADDQ(offset, t.a)
	t.MOVQ(out.c, t.c)
	t.SUBQ(operand.U32(rows), t.left)
	t.JZ(operand.LabelRef("done"))
}

// maskedOrNot writes a tile and jumps to what follows. In AVX2 a masked store is
// slow, so that there is a way without.
func (t *tile) maskedOrNot(rows int, name string, acc []reg.VecVirtual, out output) {
	if t.width == widthZ {
		t.write(acc, t.mask(), out)
		t.JMP(operand.LabelRef(label("advance", rows)))
		return
	}
	full := label(name+"_full", rows)
	t.CMPQ(t.p.at("Masked"), operand.U8(0))
	t.JE(operand.LabelRef(full))
	t.write(acc, t.mask(), out)
	t.JMP(operand.LabelRef(label("advance", rows)))
	t.Label(full)
	t.write(acc, nil, out)
	t.JMP(operand.LabelRef(label("advance", rows)))
}

// write writes the rows of a tile, the last vector of each under the mask, if
// there is one.
func (t *tile) write(acc []reg.VecVirtual, mask reg.Register, out output) {
	step := t.p.load("CStep")
	for i, v := range acc {
		j := i % t.k.vectors
		at, last := operand.Mem{Base: out.c, Disp: j * t.width}, j == t.k.vectors-1
		masked := last && mask != nil
		switch {
		case out.beta == nil:
			t.VMULPS(out.alpha, v, v)
		case masked:
			v = t.register(t.width)
			t.maskedLoad(at, mask, v)
			t.VMULPS(out.beta, v, v)
			t.VFMADD231PS(out.alpha, acc[i], v)
		default:
			v = t.register(t.width)
			t.VMULPS(at, out.beta, v)
			t.VFMADD231PS(out.alpha, acc[i], v)
		}
		if masked {
			t.maskedStore(v, mask, at)
		} else {
			t.VMOVUPS(v, at)
		}
		if last {
			t.ADDQ(step, out.c)
		}
	}
}
