package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// basedRows is how many rows of A one base register reaches: beside it and one
// step, four and multiples of the step by 1, 3 and 5.
const basedRows = 6

// panelAhead is how many rows of B before their use the first tile asks for them: as
// long as it takes to fetch them from the last cache.
const panelAhead = 8

// depthUnroll is how many steps of the depth the main loop takes at a time.
const depthUnroll = 4

const wordSize = 8 // bytes of an address

// tile writes a microkernel. It walks down a panel in tiles of k.rows rows, and
// of fewer in the end. The first tile reads B where it is and packs it, which
// costs stores for which its multiplications leave time; the others read what is
// packed, which then is in the first cache.
type tile struct {
	*routine
	k gemmKernel

	p                           panelArgument
	a, c, left                  operand.Mem // where the tile begins, and the rows from there on
	next, end                   operand.Mem // which rows of the next panel are to be asked for
	rowStep, rowStep3, rowStep5 reg.GPVirtual
	depthStep                   reg.GPVirtual
}

// panelArgument is the address of the panel.
type panelArgument struct {
	r    *routine
	base reg.Register
}

// at is the memory of a field.
func (p panelArgument) at(field string) operand.Mem {
	basic, err := p.r.Param("p").Dereference(p.base).Field(field).Resolve()
	if err != nil {
		p.r.faults = append(p.r.faults, err)
		return operand.Mem{Base: p.base}
	}
	return basic.Addr
}

func (p panelArgument) load(field string) reg.GPVirtual {
	v := p.r.GP64()
	p.r.MOVQ(p.at(field), v)
	return v
}

func newTile(r *routine, k gemmKernel) *tile {
	t := &tile{routine: r, k: k}
	t.p = panelArgument{r, r.Load(r.Param("p"), r.GP64())}
	locals := r.AllocLocal(5 * wordSize)
	t.a, t.c, t.left = locals, locals.Offset(wordSize), locals.Offset(2*wordSize)
	t.next, t.end = locals.Offset(3*wordSize), locals.Offset(4*wordSize)
	next, end := t.p.load("Next"), t.p.load("Depth")
	r.IMULQ(t.p.at("NextStep"), end)
	r.ADDQ(next, end)
	r.MOVQ(next, t.next)
	r.MOVQ(end, t.end)
	r.MOVQ(t.p.load("A"), t.a)
	r.MOVQ(t.p.load("C"), t.c)
	r.MOVQ(t.p.load("Rows"), t.left)
	t.rowStep, t.depthStep = t.p.load("RowStep"), t.p.load("DepthStep")
	t.rowStep3, t.rowStep5 = r.GP64(), r.GP64()
	r.LEAQ(operand.Mem{Base: t.rowStep, Index: t.rowStep, Scale: 2}, t.rowStep3)
	r.LEAQ(operand.Mem{Base: t.rowStep, Index: t.rowStep, Scale: 4}, t.rowStep5)
	return t
}

// panel writes the walk. Rows that are more than one tile and less than two are
// halved, since a tile of few rows has too few accumulators to keep the units busy.
func (t *tile) panel() {
	rows := t.GP64()
	t.Label("next")
	t.MOVQ(t.left, rows)
	t.CMPQ(rows, operand.U32(2*t.k.rows))
	t.JAE(operand.LabelRef(label("tile", t.k.rows)))
	t.CMPQ(rows, operand.U32(t.k.rows))
	t.JBE(operand.LabelRef("choose"))
	t.INCQ(rows)
	t.SHRQ(operand.U8(1), rows)
	t.Label("choose")
	for n := t.k.rows; n > 1; n-- {
		t.CMPQ(rows, operand.U32(n))
		t.JE(operand.LabelRef(label("tile", n)))
	}
	for n := 1; n <= t.k.rows; n++ {
		t.tile(n)
	}
	t.Label("done")
	t.close()
}

func label(name string, rows int) string { return fmt.Sprintf("%s%d", name, rows) }

// tile writes the product for so many rows.
func (t *tile) tile(rows int) {
	t.Label(label("tile", rows))
	acc := make([]reg.VecVirtual, rows*t.k.vectors)
	for i := range acc {
		acc[i] = t.register(t.width)
		t.VXORPS(acc[i], acc[i], acc[i])
	}
	bases := []reg.GPVirtual{t.GP64()}
	t.MOVQ(t.a, bases[0])
	if rows > basedRows {
		bases = append(bases, t.GP64())
		t.LEAQ(operand.Mem{Base: bases[0], Index: t.rowStep3, Scale: 2}, bases[1])
	}
	t.prefetch(rows)
	depth := t.p.load("Depth")
	t.CMPQ(t.p.at("Pack"), operand.U8(0))
	t.JE(operand.LabelRef(label("packed", rows)))
	t.packing(rows, acc, bases, depth)
	t.JMP(operand.LabelRef(label("finish", rows)))
	t.Label(label("packed", rows))
	t.packed(rows, acc, bases, depth)
	t.Label(label("finish", rows))
	t.finish(rows, acc)
	t.JMP(operand.LabelRef("next"))
}

// prefetch asks for all lines of the tile's rows of C, which it takes long to come to.
func (t *tile) prefetch(rows int) {
	c, step := t.GP64(), t.p.load("CStep")
	t.MOVQ(t.c, c)
	for i := range rows {
		for at := 0; at < t.k.vectors*t.width; at += lineSize {
			t.PREFETCHT0(operand.Mem{Base: c, Disp: at})
		}
		if i < rows-1 {
			t.ADDQ(step, c)
		}
	}
}

// packing writes the loop that reads B where it is.
func (t *tile) packing(rows int, acc []reg.VecVirtual, bases []reg.GPVirtual, depth reg.GPVirtual) {
	b, step, room := t.p.load("B"), t.p.load("BStep"), t.p.load("Room")
	line := t.line()
	mask := t.mask()
	t.Label(label("packing", rows))
	for _, disp := range t.lines() {
		t.PREFETCHT0(operand.Mem{Base: b, Index: step, Scale: panelAhead, Disp: disp})
	}
	for i, v := range line {
		from := operand.Mem{Base: b, Disp: i * t.width}
		if i == len(line)-1 {
			t.maskedLoad(from, mask, v)
		} else {
			t.VMOVUPS(from, v)
		}
		t.VMOVUPS(v, operand.Mem{Base: room, Disp: i * t.width})
	}
	t.step(rows, acc, bases, line)
	t.ADDQ(step, b)
	t.ADDQ(operand.U32(t.k.vectors*t.width), room)
	t.DECQ(depth)
	t.JNZ(operand.LabelRef(label("packing", rows)))
	t.MOVQ(operand.U32(0), t.p.at("Pack"))
}

// lines are offsets in a row of B that are in all lines of the cache which it may
// touch.
func (t *tile) lines() []int {
	var list []int
	for at := 0; at < t.k.vectors*t.width; at += lineSize {
		list = append(list, at)
	}
	return append(list, t.k.vectors*t.width-floatSize)
}

// packed writes the loops that read B from the room.
func (t *tile) packed(rows int, acc []reg.VecVirtual, bases []reg.GPVirtual, depth reg.GPVirtual) {
	room, size := t.p.load("Room"), t.k.vectors*t.width
	line := t.line()
	one := func(at int) {
		for i, v := range line {
			t.VMOVUPS(operand.Mem{Base: room, Disp: at*size + i*t.width}, v)
		}
		t.step(rows, acc, bases, line)
	}
	var next, step reg.GPVirtual
	ask := rows == t.k.rows && t.k.vectors > 1
	if ask {
		next, step = t.GP64(), t.p.load("NextStep")
		none := t.GP64()
		t.XORQ(none, none)
		t.MOVQ(t.next, next)
		t.CMPQ(next, t.end)
		t.CMOVQCC(none, step)
	}
	t.SUBQ(operand.U32(depthUnroll), depth)
	t.JB(operand.LabelRef(label("rest", rows)))
	t.Label(label("main", rows))
	if ask {
		for _, disp := range t.lines() {
			t.PREFETCHT1(operand.Mem{Base: next, Disp: disp})
		}
		t.ADDQ(step, next)
	}
	for i := range depthUnroll {
		one(i)
	}
	t.ADDQ(operand.U32(depthUnroll*size), room)
	t.SUBQ(operand.U32(depthUnroll), depth)
	t.JAE(operand.LabelRef(label("main", rows)))
	if ask {
		t.MOVQ(next, t.next)
	}
	t.Label(label("rest", rows))
	t.ADDQ(operand.U32(depthUnroll), depth)
	t.JZ(operand.LabelRef(label("finish", rows)))
	t.Label(label("single", rows))
	one(0)
	t.ADDQ(operand.U32(size), room)
	t.DECQ(depth)
	t.JNZ(operand.LabelRef(label("single", rows)))
}

// step multiplies a column of A with a row of B, and advances in A.
func (t *tile) step(rows int, acc []reg.VecVirtual, bases []reg.GPVirtual, line []reg.VecVirtual) {
	for i := range rows {
		x := t.register(t.width)
		t.VBROADCASTSS(t.value(bases[i/basedRows], i%basedRows), x)
		for j, v := range line {
			t.VFMADD231PS(v, x, acc[i*len(line)+j])
		}
	}
	for _, base := range bases {
		t.ADDQ(t.depthStep, base)
	}
}

// value is the memory of a row's value of A.
func (t *tile) value(base reg.GPVirtual, row int) operand.Mem {
	switch row {
	case 0:
		return operand.Mem{Base: base}
	case 3:
		return operand.Mem{Base: base, Index: t.rowStep3, Scale: 1}
	case 5:
		return operand.Mem{Base: base, Index: t.rowStep5, Scale: 1}
	default:
		return operand.Mem{Base: base, Index: t.rowStep, Scale: uint8(row)}
	}
}

// line returns registers for a row of B.
func (t *tile) line() []reg.VecVirtual {
	line := make([]reg.VecVirtual, t.k.vectors)
	for i := range line {
		line[i] = t.register(t.width)
	}
	return line
}

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
