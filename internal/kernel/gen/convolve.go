package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	windowLines = 3  // lines of a window
	sumsAtOnce  = 12 // accumulators: enough to hide an addition's latency twice
)

// block is a run of channels that a convolution computes at a time, in one or two
// vectors of a pixel.
type block struct {
	*routine
	channels int
	vectors  int
	bytes    int // of a vector
}

func newBlock(r *routine, channels int) block {
	bytes := min(r.width, channels*floatSize)
	return block{routine: r, channels: channels, bytes: bytes, vectors: channels * floatSize / bytes}
}

// longestRun is how many pixels, or taps, one pass works on.
func (b block) longestRun() int { return sumsAtOnce / b.vectors }

// sums returns the accumulators of a run, all zero.
func (b block) sums(run int) [][]reg.VecVirtual {
	all := make([][]reg.VecVirtual, run)
	for i := range all {
		for range b.vectors {
			v := b.register(b.bytes)
			b.VXORPS(v, v, v)
			all[i] = append(all[i], v)
		}
	}
	return all
}

// row loads the block's values at an address.
func (b block) row(at operand.Mem) []reg.VecVirtual {
	var row []reg.VecVirtual
	for i := range b.vectors {
		v := b.register(b.bytes)
		b.VMOVUPS(at.Offset(i*b.bytes), v)
		row = append(row, v)
	}
	return row
}

// multiplyAdd adds the value at an address times row to the sums.
func (b block) multiplyAdd(at operand.Mem, row, sums []reg.VecVirtual) {
	if b.bytes == widthZ {
		for i, v := range row {
			b.VFMADD231PS_BCST(at, v, sums[i])
		}
		return
	}
	value := b.register(b.bytes)
	b.VBROADCASTSS(at, value)
	for i, v := range row {
		b.VFMADD231PS(value, v, sums[i])
	}
}

// field is the memory of a field of argument c, or of a part of it.
func (r *routine) field(name string, index ...int) operand.Mem {
	component := r.Param("c").Field(name)
	for _, i := range index {
		component = component.Index(i)
	}
	basic, err := component.Resolve()
	if err != nil {
		r.faults = append(r.faults, err)
		return operand.Mem{}
	}
	return basic.Addr
}

// runs emits body for each run that c.runs asks for, the longest ones first.
func (b block) runs(body func(run int)) {
	count := b.GP64()
	for run := b.longestRun(); run > 0; run-- {
		label, done := fmt.Sprintf("run%d", run), fmt.Sprintf("run%d_done", run)
		b.MOVQ(b.field("runs", run), count)
		b.TESTQ(count, count)
		b.JZ(operand.LabelRef(done))
		b.Label(label)
		body(run)
		b.DECQ(count)
		b.JNZ(operand.LabelRef(label))
		b.Label(done)
	}
}

// places addresses the values that pixels of a run have at equal distances: the
// multiples of a distance, up to the fifth, from a pointer and from another six
// pixels further.
type places struct {
	pointers  []reg.GPVirtual
	s, s3, s5 reg.GPVirtual
}

const placesReach = 6

func (b block) places(distance operand.Mem) *places {
	p := &places{s: b.GP64(), s3: b.GP64(), s5: b.GP64(), pointers: []reg.GPVirtual{b.GP64()}}
	if b.longestRun() > placesReach {
		p.pointers = append(p.pointers, b.GP64())
	}
	b.MOVQ(distance, p.s)
	b.LEAQ(operand.Mem{Base: p.s, Index: p.s, Scale: 2}, p.s3)
	b.LEAQ(operand.Mem{Base: p.s, Index: p.s, Scale: 4}, p.s5)
	return p
}

// start points to the run's first pixel.
func (b block) start(p *places, x reg.GPVirtual, run int) {
	b.MOVQ(x, p.pointers[0])
	if run > placesReach {
		b.LEAQ(operand.Mem{Base: x, Index: p.s3, Scale: 2}, p.pointers[1])
	}
}

// move advances all pointers.
func (b block) move(p *places, run int, distance operand.Op) {
	for i := 0; i*placesReach < run; i++ {
		b.ADDQ(distance, p.pointers[i])
	}
}

// of is the address of the pixel's value.
func (p *places) of(pixel, disp int) operand.Mem {
	m := operand.Mem{Base: p.pointers[pixel/placesReach], Disp: disp}
	switch pixel % placesReach {
	case 1, 2, 4:
		m.Index, m.Scale = p.s, uint8(pixel%placesReach)
	case 3:
		m.Index, m.Scale = p.s3, 1
	case 5:
		m.Index, m.Scale = p.s5, 1
	}
	return m
}

// convolve emits the sums of windows times weights. A run of pixels shares each
// load of weights; all of a window's products of a pixel add up in registers.
func convolve(channels int) func(*routine) {
	return func(r *routine) {
		b := newBlock(r, channels)
		y, x, w := r.stream("y").next, r.stream("x").next, r.stream("w").next
		at := b.places(r.field("xPixel"))
		weights, line, tap := r.GP64(), r.GP64(), r.GP64()
		r.Label("row")
		b.runs(func(run int) {
			sums := b.sums(run)
			b.start(at, x, run)
			r.MOVQ(w, weights)
			r.MOVQ(operand.U32(windowLines), line)
			r.Label(fmt.Sprintf("line%d", run))
			r.MOVQ(r.field("taps"), tap)
			r.Label(fmt.Sprintf("tap%d", run))
			for i := range windowLines {
				row := b.row(operand.Mem{Base: weights, Disp: i * channels * floatSize})
				for pixel := range run {
					b.multiplyAdd(at.of(pixel, i*floatSize), row, sums[pixel])
				}
			}
			b.move(at, run, operand.U32(windowLines*floatSize))
			r.ADDQ(operand.U32(windowLines*channels*floatSize), weights)
			r.SUBQ(operand.U32(windowLines), tap)
			r.JNZ(operand.LabelRef(fmt.Sprintf("tap%d", run)))
			b.move(at, run, r.field("lineNext"))
			r.DECQ(line)
			r.JNZ(operand.LabelRef(fmt.Sprintf("line%d", run)))
			for pixel := range run {
				for i, v := range sums[pixel] {
					r.VMOVUPS(v, operand.Mem{Base: y, Disp: i * b.bytes})
				}
				r.ADDQ(r.field("yPixel"), y)
			}
			b.start(at, x, run)
			b.LEAQ(at.of(run%placesReach, 0), x)
			if run >= placesReach {
				b.LEAQ(operand.Mem{Base: x, Index: at.s3, Scale: 2}, x)
			}
			if run == 2*placesReach {
				b.LEAQ(operand.Mem{Base: x, Index: at.s3, Scale: 2}, x)
			}
		})
		r.ADDQ(r.field("xNext"), x)
		r.ADDQ(r.field("yNext"), y)
		r.DECQ(r.field("rows"))
		r.JNZ(operand.LabelRef("row"))
		r.close()
	}
}

// convolveGradient emits the sums over pixels of the values of a window's line
// times those of y: a run of taps shares each load of y.
func convolveGradient(channels int) func(*routine) {
	return func(r *routine) {
		b := newBlock(r, channels)
		w, x, y := r.stream("w").next, r.stream("x").next, r.stream("y").next
		xPixel, yPixel, xAt, yAt := r.GP64(), r.GP64(), r.GP64(), r.GP64()
		rows, cols := r.GP64(), r.GP64()
		r.MOVQ(r.field("xPixel"), xPixel)
		r.MOVQ(r.field("yPixel"), yPixel)
		b.runs(func(run int) {
			sums := b.sums(run)
			r.MOVQ(x, xAt)
			r.MOVQ(y, yAt)
			r.MOVQ(r.field("rows"), rows)
			r.Label(fmt.Sprintf("row%d", run))
			r.MOVQ(r.field("cols"), cols)
			r.Label(fmt.Sprintf("pixel%d", run))
			row := b.row(operand.Mem{Base: yAt})
			for tap := range run {
				b.multiplyAdd(operand.Mem{Base: xAt, Disp: tap * floatSize}, row, sums[tap])
			}
			r.ADDQ(xPixel, xAt)
			r.ADDQ(yPixel, yAt)
			r.DECQ(cols)
			r.JNZ(operand.LabelRef(fmt.Sprintf("pixel%d", run)))
			r.ADDQ(r.field("xNext"), xAt)
			r.ADDQ(r.field("yNext"), yAt)
			r.DECQ(rows)
			r.JNZ(operand.LabelRef(fmt.Sprintf("row%d", run)))
			for tap := range run {
				for i, v := range sums[tap] {
					to := operand.Mem{Base: w, Disp: (tap*b.vectors + i) * b.bytes}
					r.VADDPS(to, v, v)
					r.VMOVUPS(v, to)
				}
			}
			r.ADDQ(operand.U32(run*floatSize), x)
			r.ADDQ(operand.U32(run*channels*floatSize), w)
		})
		r.close()
	}
}
