package sums

import (
	"math/bits"
	"time"
)

// A step of a Moved sum is sent in chunks, so that a partner can begin with the first, and a lost one costs little. A
// chunk has about chunkNumbers numbers; there are at most mostChunks, since on long links each costs a round trip. Of
// one step chunksAhead are in flight at once.
const (
	mostChunks   = 8
	chunkNumbers = 1 << 18
	chunksAhead  = 2
)

// grains is the number of parts into which the schedule divides the numbers of so many participants.
func grains(op Op, size int) int {
	if op == MovedRing {
		return mostChunks * size
	}
	return mostChunks << (bits.Len(uint(size)) - 1)
}

// Chunk is a run of numbers of a Moved sum: the Part-th, from 0, of Parts runs of about equally many.
type Chunk struct {
	Part, Parts int
	Add         bool // the receiver adds it to its own, else it replaces its own
}

// chunks are the chunks of an attempt at a Moved sum, sent and received.
type chunks struct {
	loaded bool     // the caller's numbers are ready
	handed int      // hands whose chunks have all been sent
	sent   int      // chunks of the next hand
	left   []int    // by hand, chunks that partners do not have yet
	begun  []uint16 // by take, a bit for each chunk that comes or has come
	ended  []uint16 // by take, a bit for each chunk that has come
}

func newChunks(a *attempt) chunks {
	p := chunks{begun: make([]uint16, len(a.takes)), ended: make([]uint16, len(a.takes))}
	for _, h := range a.hands {
		p.left = append(p.left, p.count(a, h))
	}
	return p
}

// count is the number of chunks of a step.
func (p *chunks) count(a *attempt, s step) int {
	least := 1
	if a.Op == MovedTree { // a transfer of the whole is one of the owner's own
		least = 2
	}
	numbers := a.Length / grains(a.Op, a.size) * (s.to - s.from)
	return 1 << (bits.Len(uint(min(max(numbers/chunkNumbers, least), mostChunks))) - 1)
}

// at is the i-th chunk of a step, and how many grains it has.
func (p *chunks) at(a *attempt, s step, i int) (chunk Chunk, grain int) {
	grain = (s.to - s.from) / p.count(a, s)
	return Chunk{Part: s.from/grain + i, Parts: grains(a.Op, a.size) / grain, Add: s.adds}, grain
}

// find is the index of a chunk in a step with a partner, -1 if it is not part of it.
func (p *chunks) find(a *attempt, s step, with ID, chunk Chunk) int {
	first, _ := p.at(a, s, 0)
	i := chunk.Part - first.Part
	first.Part = chunk.Part
	if i < 0 || i >= p.count(a, s) || first != chunk || a.partner(s.peer) != with {
		return -1
	}
	return i
}

// given tells whether partners have everything that they need from this participant.
func (p *chunks) given() bool {
	left := 0
	for _, n := range p.left {
		left += n
	}
	return p.loaded && left == 0
}

// waits tells whether a hand waits for the end of the one before. A finished part is sent on as part of larger and
// larger hands. Codecs that round give all members the same values only in this order, since their blocks begin where
// a hand begins.
func (p *chunks) waits(a *attempt, h *step) bool {
	if p.handed == 0 {
		return false
	}
	before := a.hands[p.handed-1]
	return !before.adds && p.left[p.handed-1] > 0 && (before.from != h.from || before.to != h.to)
}

// give sends the chunks that are ready.
func (p *chunks) give(a *attempt) {
	for ; p.handed < len(a.hands); p.handed, p.sent = p.handed+1, 0 {
		h := &a.hands[p.handed]
		if p.waits(a, h) {
			return
		}
		for count := p.count(a, *h); p.sent < count; p.sent++ {
			chunk, grain := p.at(a, *h, p.sent)
			if underWay := p.sent - (count - p.left[p.handed]); underWay >= chunksAhead || h.from+(p.sent+1)*grain > a.ready(h) {
				return
			}
			a.emit(Outcome{To: a.partner(h.peer), Chunk: &chunk})
		}
	}
}

// Moving is an attempt at a Moved sum, for as long as this member has its place in it. It belongs to the machine.
type Moving struct {
	Name    string
	Attempt uint64
	part    *part
	a       *attempt
}

// over tells whether the member no longer has a place in it.
func (m *Moving) over(now time.Duration) bool {
	m.part.m.now = now
	s := m.part.m.open[m.Name]
	return s == nil || s.own != m.part || m.part.current != m.a || m.part.stage != Placed
}

// Loaded notes that the numbers are ready for chunks to be taken from and added to.
func (m *Moving) Loaded(now time.Duration) {
	if !m.over(now) {
		m.a.chunks.loaded = true
		m.a.chunks.give(m.a)
		m.part.close()
	}
}

// Accept tells whether to take a chunk that a member offers: each chunk that is due, once. Chunks that are added
// may come in any order; sending waits for them.
func (m *Moving) Accept(now time.Duration, from ID, chunk Chunk) bool {
	p := &m.a.chunks
	for i := range m.a.takes {
		if n := p.find(m.a, m.a.takes[i].step, from, chunk); n >= 0 && p.begun[i]&(1<<n) == 0 && !m.over(now) {
			p.begun[i] |= 1 << n
			return true
		}
	}
	return false
}

// Took notes that an accepted chunk has come.
func (m *Moving) Took(now time.Duration, from ID, chunk Chunk) {
	if m.over(now) {
		return
	}
	p := &m.a.chunks
	for i := range m.a.takes {
		t := &m.a.takes[i]
		if n := p.find(m.a, t.step, from, chunk); n >= 0 && p.begun[i]&(1<<n) != 0 {
			p.ended[i] |= 1 << n
			_, grain := p.at(m.a, t.step, 0)
			before := bits.TrailingZeros16(^p.ended[i]) // chunks before the first missing one
			t.came, t.whole = before*grain, before == p.count(m.a, t.step)
		}
	}
	m.a.next()
	m.moved()
}

// Gave notes that a member has received a chunk.
func (m *Moving) Gave(now time.Duration, to ID, chunk Chunk) {
	if m.over(now) {
		return
	}
	for i, h := range m.a.hands {
		if m.a.chunks.find(m.a, h, to, chunk) >= 0 {
			m.a.chunks.left[i]--
		}
	}
	m.moved()
}

func (m *Moving) moved() {
	m.a.chunks.give(m.a)
	m.part.moved = m.part.m.now
	m.part.close()
}
