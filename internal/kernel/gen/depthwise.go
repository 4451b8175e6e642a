package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	// depthTaps is the number of weights of a channel.
	depthTaps = windowLines * windowLines
	// depthRun is how many neighbouring pixels share a load of weights.
	depthRun = 6
)

// depth is the routine that convolves each channel by itself.
type depth struct {
	*routine
	x, y, w            *stream
	channel, s, s3, s5 reg.GPVirtual // bytes of a pixel; from a window to the next, and multiples
}

// depthwise emits the sums of a channel's nine taps times its weights. It works on
// the channels that fill a line of the cache at a time: loads of less than a line
// that are lines apart get into each other's way.
func depthwise(r *routine) {
	d := &depth{routine: r, x: r.stream("x"), y: r.stream("y"), w: r.stream("w")}
	d.channel, d.s, d.s3, d.s5, d.left = r.GP64(), r.GP64(), r.GP64(), r.GP64(), r.GP64()
	d.MOVQ(d.field("channels"), d.channel)
	d.SHLQ(operand.U8(2), d.channel)
	d.MOVQ(d.field("xPixel"), d.s)
	d.LEAQ(operand.Mem{Base: d.s, Index: d.s, Scale: 2}, d.s3)
	d.LEAQ(operand.Mem{Base: d.s, Index: d.s, Scale: 4}, d.s5)
	d.Label("row")
	d.MOVQ(d.field("channels"), d.left)
	const line = lineSize / floatSize
	d.channels(line/d.floats(), d.floats())
	d.channels(1, line/2)
	d.channels(1, 1)
	d.nextRow()
}

// channels emits the sums of a row for as many channels as some vectors hold, as long
// as so many are left.
func (d *depth) channels(vectors, values int) {
	lanes, all := d.lanes(vectors, values), vectors*values
	x, y, count := d.GP64(), d.GP64(), d.GP64()
	d.loop(fmt.Sprintf("channels%d", all), all, func() {
		d.MOVQ(d.x.next, x)
		d.MOVQ(d.y.next, y)
		for run := depthRun; run > 0; run-- {
			label := fmt.Sprintf("channels%d_run%d", all, run)
			d.MOVQ(d.field("runs", run), count)
			d.TESTQ(count, count)
			d.JZ(operand.LabelRef(label + "_done"))
			d.Label(label)
			d.run(lanes, x, y, run)
			d.LEAQ(d.further(x, run), x)
			d.DECQ(count)
			d.JNZ(operand.LabelRef(label))
			d.Label(label + "_done")
		}
	})
}

// run emits the sums of neighbouring pixels, and moves y behind them.
func (d *depth) run(lanes []lane, x, y reg.GPVirtual, run int) {
	sums := make([][]reg.VecVirtual, run)
	for pixel := range sums {
		for _, l := range lanes {
			v := l.vector(floatSize)
			l.clear(v)
			sums[pixel] = append(sums[pixel], v)
		}
	}
	from, weights := d.GP64(), d.GP64()
	d.MOVQ(x, from)
	d.MOVQ(d.w.next, weights)
	for tap := range depthTaps {
		for i, l := range lanes {
			v := l.move(operand.Mem{Base: weights, Disp: l.skip * floatSize})
			for pixel := range run {
				l.multiplyAdd(d.further(from, pixel).Offset(l.skip*floatSize), v, sums[pixel][i])
			}
		}
		switch {
		case tap == depthTaps-1:
		case tap%windowLines == windowLines-1:
			d.ADDQ(d.field("lineNext"), from)
			d.ADDQ(d.channel, weights)
		default:
			d.ADDQ(d.channel, from)
			d.ADDQ(d.channel, weights)
		}
	}
	for pixel := range run {
		for i, l := range lanes {
			l.moveTo(sums[pixel][i], operand.Mem{Base: y, Disp: l.skip * floatSize})
		}
		d.ADDQ(d.channel, y)
	}
}

// further is the memory that is so many windows further, at most depthRun.
func (d *depth) further(base reg.GPVirtual, windows int) operand.Mem {
	m := operand.Mem{Base: base}
	switch windows {
	case 0:
	case 3, 6:
		m.Index, m.Scale = d.s3, uint8(windows/3)
	case 5:
		m.Index, m.Scale = d.s5, 1
	default:
		m.Index, m.Scale = d.s, uint8(windows)
	}
	return m
}

// depthwiseGradient emits, for each tap, the sum over a row's pixels of its values
// times those of y.
func depthwiseGradient(r *routine) {
	d := &depth{routine: r, x: r.stream("x"), y: r.stream("y"), w: r.stream("w")}
	d.channel, d.left = d.GP64(), d.GP64()
	d.MOVQ(d.field("channels"), d.channel)
	d.SHLQ(operand.U8(2), d.channel)
	d.Label("row")
	d.MOVQ(d.field("channels"), d.left)
	const line = lineSize / floatSize
	d.gradients(line/d.floats(), d.floats())
	d.gradients(1, line/2)
	d.gradients(1, 1)
	d.nextRow()
}

// nextRow moves to the next row, and ends the routine after the last.
func (d *depth) nextRow() {
	d.SUBQ(d.channel, d.w.next)
	d.ADDQ(d.field("xNext"), d.x.next)
	d.ADDQ(d.field("yNext"), d.y.next)
	d.DECQ(d.field("rows"))
	d.JNZ(operand.LabelRef("row"))
	d.close()
}

// gradients emits the sums of a row for as many channels as some vectors hold, as
// long as so many are left: of all lines in one pass if there are registers for them.
func (d *depth) gradients(vectors, values int) {
	lines := windowLines
	if vectors > 1 {
		lines = 1
	}
	all := vectors * values
	x, weights := d.GP64(), d.GP64()
	d.loop(fmt.Sprintf("channels%d", all), all, func() {
		d.MOVQ(d.x.next, x)
		d.MOVQ(d.w.next, weights)
		for from := 0; from < windowLines; from += lines {
			d.pass(fmt.Sprintf("channels%d_line%d", all, from), d.lanes(vectors, values), x, lines, weights)
			d.ADDQ(d.field("line"), x)
		}
	})
}

// lanes are vectors of so many values next to each other.
func (d *depth) lanes(vectors, values int) []lane {
	lanes := make([]lane, vectors)
	for i := range lanes {
		lanes[i] = lane{routine: d.routine, values: values, skip: i * values}
	}
	return lanes
}

// pass emits the sums of some lines from x on, and adds them to their weights, which
// it moves behind them.
func (d *depth) pass(label string, lanes []lane, x reg.GPVirtual, lines int, weights reg.GPVirtual) {
	y, cols := d.GP64(), d.GP64()
	at := make([]reg.GPVirtual, lines)
	for i := range at {
		at[i] = d.GP64()
		d.MOVQ(x, at[i])
		for range i {
			d.ADDQ(d.field("line"), at[i])
		}
	}
	sums := make([][]reg.VecVirtual, lines*windowLines)
	for tap := range sums {
		for _, l := range lanes {
			v := l.vector(floatSize)
			l.clear(v)
			sums[tap] = append(sums[tap], v)
		}
	}
	d.MOVQ(d.y.next, y)
	d.MOVQ(d.field("cols"), cols)
	d.Label(label)
	for i, l := range lanes {
		v := l.move(operand.Mem{Base: y, Disp: l.skip * floatSize})
		for tap := range sums {
			from := operand.Mem{Base: at[tap/windowLines], Disp: l.skip * floatSize}
			if column := tap % windowLines; column > 0 {
				from = from.Idx(d.channel, uint8(column))
			}
			l.multiplyAdd(from, v, sums[tap][i])
		}
	}
	for i := range at {
		d.ADDQ(d.field("xPixel"), at[i])
	}
	d.ADDQ(d.channel, y)
	d.DECQ(cols)
	d.JNZ(operand.LabelRef(label))
	for tap := range sums {
		for i, l := range lanes {
			to := operand.Mem{Base: weights, Disp: l.skip * floatSize}
			l.VADDPS(l.move(to), sums[tap][i], sums[tap][i])
			l.moveTo(sums[tap][i], to)
		}
		d.ADDQ(d.channel, weights)
	}
}
