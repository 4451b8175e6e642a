package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Out of the cache, one walk through memory keeps only some of the core's
// prefetchers busy. Long slices are therefore walked in several strands at once,
// each a run of values behind the one before. Strands begin a quarter or half of a
// page beyond whole pages from each other, so that their lines share no set of a
// cache, and no load has the low address bits of another strand's store.
const (
	stranded    = 62464 // values that are walked in strands
	manyStrands = 4     // of a routine of at most narrow
	fewStrands  = 2     // of others
	narrow      = 6     // bytes of a value in all slices
)

const lineSize = 64 // bytes

// piece is how many values one call takes at most: all strands once, and what
// alignment may take before.
const piece = stranded + lineSize

// alignFrom is the number of values from which it pays to begin with single
// ones until the destination is aligned.
const alignFrom = 1024

// routine is one assembly function while it is written.
type routine struct {
	*build.Context
	level
	streams []*stream
	past    bool          // the strands write past the cache
	left    reg.GPVirtual // values not yet done
	faults  []error
}

// stream is one slice that a routine walks through.
type stream struct {
	name string
	next reg.GPVirtual // address of the next value
	size int           // bytes of a value
}

// open loads the addresses of the slices of k, and the number of values, which
// the slice that counts gives.
func (r *routine) open(k kernel) {
	for i, p := range k.params {
		if p.bytes == 0 {
			continue
		}
		s := &stream{name: p.name, next: r.GP64(), size: p.bytes}
		r.Load(r.Param(p.name).Base(), s.next)
		r.streams = append(r.streams, s)
		if i == k.counts { // none, where a kernel counts for itself
			r.left = r.GP64()
			r.Load(r.Param(p.name).Len(), r.left)
			if per := p.elements(); per > 1 {
				r.SHRQ(operand.U8(log2(per)), r.left)
			}
		}
	}
}

func (r *routine) stream(name string) *stream {
	for _, s := range r.streams {
		if s.name == name {
			return s
		}
	}
	r.faults = append(r.faults, fmt.Errorf("no slice is called %s", name))
	return r.streams[0]
}

// each emits body for all values, which no value depends on but its own: singly
// until lead is aligned, then per values at a time in the widest registers,
// then singly again.
func (r *routine) each(lead string, per, unroll int, body func(lane)) {
	r.align(lead, per, body)
	r.strands(per, body)
	r.vectors(per, unroll, body)
	r.singles(body)
	r.close()
}

// align emits body for single values until the address of the stream is a
// multiple of what per values take. Short slices are left alone.
func (r *routine) align(name string, per int, body func(lane)) {
	s, count := r.stream(name), r.GP64()
	r.CMPQ(r.left, operand.U32(alignFrom))
	r.JB(operand.LabelRef("aligned"))
	r.MOVQ(s.next, count)
	r.NEGQ(count)
	r.ANDQ(operand.U32(per*s.size-1), count)
	r.SHRQ(operand.U8(log2(s.size)), count)
	r.JZ(operand.LabelRef("aligned"))
	r.SUBQ(count, r.left)
	r.Label("align")
	body(lane{routine: r, values: 1})
	r.advance(1)
	r.DECQ(count)
	r.JNZ(operand.LabelRef("align"))
	r.Label("aligned")
}

// strands emits body for per values at a time, a line of each strand in turn.
func (r *routine) strands(per int, body func(lane)) {
	widest, bytes, strands := 0, 0, fewStrands
	for _, s := range r.streams {
		widest, bytes = max(widest, s.size), bytes+s.size
	}
	if bytes <= narrow {
		strands = manyStrands
	}
	length := stranded / strands
	line := max(1, lineSize/(per*widest)) // in lanes
	count := r.GP64()
	r.CMPQ(r.left, operand.U32(stranded))
	r.JB(operand.LabelRef("strands_done"))
	if r.past {
		r.needAligned(per, "strands_done")
	}
	r.SUBQ(operand.U32(stranded), r.left)
	r.MOVQ(operand.U32(length/(line*per)), count)
	r.Label("strands")
	for i := range strands {
		for j := range line {
			body(lane{routine: r, index: i*line + j, values: per, skip: i*length + j*per, past: r.past})
		}
	}
	r.advance(line * per)
	r.DECQ(count)
	r.JNZ(operand.LabelRef("strands"))
	r.advance((strands - 1) * length)
	if r.past {
		r.SFENCE() // other cores see these stores in no order before
	}
	r.Label("strands_done")
}

// needAligned jumps to a label if the first stream is not aligned for stores past
// the cache. (Codes may begin at an odd address.)
func (r *routine) needAligned(per int, label string) {
	to := r.streams[0]
	r.TESTQ(operand.U32(per*to.size-1), to.next)
	r.JNZ(operand.LabelRef(label))
}

// vectors emits body for per values at a time: unroll times in the loop that
// does most of the work, then once, until fewer are left.
func (r *routine) vectors(per, unroll int, body func(lane)) {
	r.loop("wide", per*unroll, func() {
		for i := range unroll {
			body(lane{routine: r, index: i, values: per, skip: per * i})
		}
	})
	if unroll > 1 {
		r.loop("one", per, func() { body(lane{routine: r, values: per}) })
	}
}

// singles emits body for the values that are left, one at a time.
func (r *routine) singles(body func(lane)) {
	r.loop("single", 1, func() { body(lane{routine: r, values: 1}) })
}

// loop emits body for as long as there are count values left for it.
func (r *routine) loop(label string, count int, body func()) {
	done := label + "_done"
	r.CMPQ(r.left, operand.U32(count))
	r.JB(operand.LabelRef(done))
	r.Label(label)
	body()
	r.advance(count)
	r.SUBQ(operand.U32(count), r.left)
	r.CMPQ(r.left, operand.U32(count))
	r.JAE(operand.LabelRef(label))
	r.Label(done)
}

func (r *routine) advance(count int) {
	for _, s := range r.streams {
		r.ADDQ(operand.U32(count*s.size), s.next)
	}
}

// close ends the routine. Upper halves that are left dirty slow down the SSE
// code that the Go compiler writes.
func (r *routine) close() {
	r.VZEROUPPER()
	r.RET()
}

func log2(n int) uint8 { return uint8(bits.TrailingZeros(uint(n))) }
