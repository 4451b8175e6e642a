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

func (r *routine) floats() int { return r.width / floatSize }

// offset is the memory so many bytes beyond the next value of a stream.
func (r *routine) offset(name string, bytes int) operand.Mem {
	return operand.Mem{Base: r.stream(name).next, Disp: bytes}
}

// fetch asks for the lines of so many bytes of a stream that will be needed soon.
func (r *routine) fetch(name string, at, bytes int) { r.fetchAt(name, at+ahead, bytes) }

func (r *routine) fetchAt(name string, at, bytes int) {
	for ; bytes > 0; at, bytes = at+lineSize, bytes-lineSize {
		r.PREFETCHT0(r.offset(name, at))
	}
}

// fetchFrom returns what emits a fetch of the next bytes, one line after the other
// whatever the order in which quarters are worked on: memory is faster that way.
func (r *routine) fetchFrom(name string) func(bytes int) {
	soon := &stream{name: name, next: r.GP64(), size: floatSize}
	r.MOVQ(r.stream(name).next, soon.next)
	return func(bytes int) {
		for at := 0; at < bytes; at += lineSize {
			r.PREFETCHT0(operand.Mem{Base: soon.next, Disp: ahead + at})
		}
		r.ADDQ(operand.U32(bytes), soon.next)
	}
}

// count emits body so many times in a loop; body advances the streams.
func (r *routine) count(label string, times int, body func()) {
	left := r.GP64()
	r.MOVQ(operand.U64(uint64(times)), left)
	r.Label(label)
	body()
	r.DECQ(left)
	r.JNZ(operand.LabelRef(label))
}

// wordArgument fills a register of the level's width with a uint32 argument.
func (r *routine) wordArgument(name string) reg.VecVirtual {
	word, v := r.GP32(), r.register(r.width)
	r.Load(r.Param(name), word)
	r.VMOVD(word, v.AsX())
	r.VPBROADCASTD(v.AsX(), v)
	return v
}

// or emits b = a | b, as and does.
func (r *routine) or(a operand.Op, b reg.Register) {
	if b.Size() == widthZ {
		r.VPORD(a, b, b)
	} else {
		r.VPOR(a, b, b)
	}
}

// lowBytes writes the lowest bytes of the 32-bit values of two vectors, which it
// changes: with 512 bits at once, and else every second time those of four vectors,
// of which it keeps the first two in packed.
func (r *routine) lowBytes(v [2]reg.VecVirtual, packed *reg.VecVirtual, mask, order reg.VecVirtual, to func(bytes int) operand.Mem) {
	if r.width == widthZ {
		for i := range v {
			r.VPMOVDB(v[i], to(i*r.floats()))
		}
		return
	}
	for i := range v {
		r.VPAND(mask, v[i], v[i])
	}
	r.VPACKUSDW(v[1], v[0], v[0])
	if *packed == nil {
		*packed = v[0]
		return
	}
	r.VPACKUSWB(v[0], *packed, v[0])
	r.VPERMD(v[0], order, v[0])
	r.VMOVUPS(v[0], to(0))
	*packed = nil
}

// order is what puts 32-bit words back in order that packing four registers to bytes
// leaves in disorder, since it works on each 128 bits for itself.
func (r *routine) order() reg.VecVirtual {
	v := r.register(r.width)
	if r.width == widthY {
		r.words(0x07_03_06_02_05_01_04_00, v.AsX())
	} else {
		upper := r.XMM()
		r.words(0x0d_09_05_01_0c_08_04_00, v.AsX())
		r.words(0x0f_0b_07_03_0e_0a_06_02, upper)
		r.VPUNPCKLQDQ(upper, v.AsX(), v.AsX())
	}
	r.VPMOVZXBD(v.AsX(), v)
	return v
}

// words fills the low half of v.
func (r *routine) words(bytes uint64, v reg.Register) {
	general := r.GP64()
	r.MOVQ(operand.U64(bytes), general)
	r.VMOVQ(general, v)
}
