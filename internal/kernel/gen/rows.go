package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Codes of comparisons that signal nothing.
const (
	notLessOrEqual = 22 // true for NaN
	greater        = 30 // false for NaN
	notEqual       = 4  // true for NaN
)

func rectify(r *routine) {
	zero := r.zero()
	r.each("dst", r.floats(), unroll, func(l lane) { l.store(l.rectified(l.load("dst"), zero), "dst") })
}

func rectifyGradient(r *routine) {
	zero := r.zero()
	r.each("grad", r.floats(), unroll, func(l lane) {
		grad := l.load("grad")
		l.shut(grad, l.load("x"), zero)
		l.store(grad, "grad")
	})
}

// most is the largest value of relu6.
const most = 6

func relu6(r *routine) {
	zero, six := r.zero(), r.bits(math.Float32bits(most))
	r.each("dst", r.floats(), unroll, func(l lane) {
		x := l.rectified(l.load("x"), zero)
		l.VMINPS(x, l.see(six, floatSize), x)
		l.store(x, "dst")
	})
}

// relu6Gradient clears the values of grad where those of x are not between 0 and 6.
func relu6Gradient(r *routine) {
	zero, six := r.zero(), r.bits(math.Float32bits(most))
	r.each("grad", r.floats(), unroll, func(l lane) {
		grad, x := l.load("grad"), l.load("x")
		l.shut(grad, x, zero)
		l.VSUBPS(x, l.see(six, floatSize), x)
		l.shut(grad, x, zero)
		l.store(grad, "grad")
	})
}

// eachRow emits body for all values of rows that follow one another, whose number
// is argument rows. The streams named begin again with each row, and the first of
// them has its length.
func eachRow(r *routine, body func(lane), again ...string) {
	rows, length := r.GP64(), r.GP64()
	r.left = r.GP64()
	r.Load(r.Param("rows"), rows)
	r.Load(r.Param(again[0]).Len(), length)
	r.Label("row")
	r.MOVQ(length, r.left)
	r.columns(2, body)
	for _, name := range again {
		r.LEAQ(operand.Mem{Base: length, Index: length, Scale: 1}, r.left)
		r.SHLQ(operand.U8(1), r.left)
		r.SUBQ(r.left, r.stream(name).next)
	}
	r.DECQ(rows)
	r.JNZ(operand.LabelRef("row"))
	r.close()
}

// columns emits body for the values that are left of a row, which may be few.
func (r *routine) columns(unroll int, body func(lane)) {
	r.vectors(r.floats(), unroll, body)
	if r.width == widthZ {
		r.loop("half", r.floats()/2, func() { body(lane{routine: r, values: r.floats() / 2}) })
	}
	r.singles(body)
}

func addRows(r *routine) {
	eachRow(r, func(l lane) {
		x := l.load("x")
		l.VADDPS(l.load("row"), x, x)
		l.store(x, "x")
	}, "row")
}

func addRowsRectify(r *routine) {
	zero := r.zero()
	eachRow(r, func(l lane) {
		x := l.load("x")
		l.VADDPS(l.load("row"), x, x)
		l.store(l.rectified(x, zero), "x")
	}, "row")
}

func scaleRows(rectify bool) func(*routine) {
	return func(r *routine) {
		var zero reg.VecVirtual
		if rectify {
			zero = r.zero()
		}
		eachRow(r, func(l lane) {
			x := l.load("x")
			l.VMULPS(l.load("scale"), x, x)
			l.VADDPS(l.load("shift"), x, x)
			if rectify {
				l.rectified(x, zero)
			}
			l.store(x, "dst")
		}, "scale", "shift")
	}
}

func combineRows(r *routine) {
	eachRow(r, func(l lane) {
		x, y := l.load("x"), l.load("y")
		l.VMULPS(l.load("a"), x, x)
		l.VMULPS(l.load("b"), y, y)
		l.VADDPS(y, x, x)
		l.VADDPS(l.load("shift"), x, x)
		l.store(x, "dst")
	}, "shift", "a", "b")
}

// sumLanes are the numbers of columns that are summed at once: as lanes of values
// each.
func sumLanes(r *routine) [][2]int {
	if r.width == widthZ {
		return [][2]int{{4, 8}, {1, 8}, {1, 4}, {1, 1}}
	}
	return [][2]int{{4, 4}, {1, 4}, {1, 1}}
}

// eachColumn emits, for all columns, what first does, then add for each of as many
// rows as argument rows says, then last; all three with a lane's accumulators.
func eachColumn(r *routine, first, add, last func(l lane, acc []reg.Register), sums string, count int) {
	rows, stride := r.GP64(), r.GP64()
	r.left = r.GP64()
	r.Load(r.Param(sums).Len(), r.left)
	r.LEAQ(operand.Mem{Base: r.left, Index: r.left, Scale: 1}, stride)
	r.SHLQ(operand.U8(1), stride)
	for _, shape := range sumLanes(r) {
		lanes, acc := make([]lane, shape[0]), make([][]reg.Register, shape[0])
		for i := range lanes {
			lanes[i] = lane{routine: r, values: shape[1], skip: i * shape[1]}
		}
		each := func(do func(l lane, acc []reg.Register)) {
			for i, l := range lanes {
				do(l, acc[i])
			}
		}
		width := shape[0] * shape[1]
		label := fmt.Sprintf("columns%d", width)
		r.loop(label, width, func() {
			for i, l := range lanes {
				acc[i] = nil
				for range count {
					acc[i] = append(acc[i], l.vector(doubleSize))
				}
			}
			each(first)
			begin := r.mark()
			r.Load(r.Param("rows"), rows)
			r.Label(label + "_rows")
			each(add)
			for _, s := range r.streams {
				switch {
				case s.ofRows():
					r.ADDQ(operand.U32(floatSize), s.next)
				case begin[s] != nil:
					r.ADDQ(stride, s.next)
				}
			}
			r.DECQ(rows)
			r.JNZ(operand.LabelRef(label + "_rows"))
			for _, s := range r.streams {
				if begin[s] != nil {
					r.MOVQ(begin[s], s.next)
				}
				if s.ofRows() { // which go on with rows, not with columns
					r.SUBQ(operand.U32(width*floatSize), s.next)
				}
			}
			each(last)
		})
	}
	r.close()
}

// ofRows is whether the stream has a value for each row.
func (s *stream) ofRows() bool { return s.name == "mean" || s.name == "inverse" }

// mark keeps where the streams are that walk through a matrix, or its rows' statistics.
func (r *routine) mark() map[*stream]reg.Register {
	begin := map[*stream]reg.Register{}
	for _, s := range r.streams {
		if s.name == "x" || s.name == "y" || s.ofRows() {
			at := r.GP64()
			r.MOVQ(s.next, at)
			begin[s] = at
		}
	}
	return begin
}

func sumRows(r *routine) {
	eachColumn(r, func(l lane, acc []reg.Register) {
		l.VXORPD(acc[0], acc[0], acc[0])
	}, func(l lane, acc []reg.Register) {
		l.VADDPD(l.doubles("x"), acc[0], acc[0])
	}, func(l lane, acc []reg.Register) {
		sum := l.narrowed(acc[0])
		l.VADDPS(l.load("sum"), sum, sum)
		l.store(sum, "sum")
	}, "sum", 1)
}

// sumSquareRows is sumProductRows of x with itself, which is converted once.
func sumSquareRows(r *routine) {
	eachColumn(r, func(l lane, acc []reg.Register) {
		l.loadDoubles("sum", acc[0])
		l.loadDoubles("product", acc[1])
	}, func(l lane, acc []reg.Register) {
		x := l.doubles("x")
		l.VADDPD(x, acc[0], acc[0])
		l.VFMADD231PD(x, x, acc[1])
	}, func(l lane, acc []reg.Register) {
		l.storeDoubles(acc[0], "sum")
		l.storeDoubles(acc[1], "product")
	}, "sum", 2)
}

// The products are exact, so that a fused multiply-add rounds as two operations.
func sumProductRows(r *routine) {
	eachColumn(r, func(l lane, acc []reg.Register) {
		l.loadDoubles("sum", acc[0])
		l.loadDoubles("product", acc[1])
	}, func(l lane, acc []reg.Register) {
		x := l.doubles("x")
		l.VADDPD(x, acc[0], acc[0])
		l.VFMADD231PD(l.doubles("y"), x, acc[1])
	}, func(l lane, acc []reg.Register) {
		l.storeDoubles(acc[0], "sum")
		l.storeDoubles(acc[1], "product")
	}, "sum", 2)
}
