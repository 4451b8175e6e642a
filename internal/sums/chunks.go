package sums

import (
	"math/bits"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// chunksAhead is how many chunks are in flight to a partner at once.
const chunksAhead = 4

// grains is the number of parts into which the schedule divides a stripe among so many participants.
func grains(op Op, size int) int {
	switch op.shape() {
	case topology.Ring:
		return size
	case topology.Tree:
		return 1
	}
	return 1 << (bits.Len(uint(size)) - 1)
}

// Chunk is a run of numbers of a Moved sum: the Part-th, from 0, of Parts runs of about equally many.
type Chunk struct {
	Part, Parts int
	Add         bool // the receiver adds it to its own, else it replaces its own
}

// strand is a participant's part in summing one stripe: each step is one chunk.
type strand struct {
	stripe
	loaded bool // the caller's numbers are there to be sent
	hands  []step
	handed int    // hands that have been sent
	given  []bool // by hand: the partner has it
	takes  []taking
	begun  []bool // by take: it comes or has come
	taken  int    // takes that are complete, in order
}

// chunk is what a step carries.
func (s *strand) chunk(a *attempt, h step) Chunk {
	width, all := h.to-h.from, grains(a.Op, a.size)
	return Chunk{Part: (s.at*all + h.from) / width, Parts: s.of * all / width, Add: h.adds}
}

// complete tells whether the stripe is here, and no partner still needs it from here.
func (s *strand) complete() bool {
	return s.loaded && s.taken == len(s.takes) && !slices.Contains(s.given, false)
}

// waits tells whether the next hand waits for the end of the one before. A finished part is sent on as part of larger and
// larger hands. Codecs that round give all members the same values only in this order, since their blocks begin where
// a hand begins.
func (s *strand) waits(rounds bool) bool {
	if s.handed == 0 || !rounds {
		return false
	}
	before, next := s.hands[s.handed-1], s.hands[s.handed]
	return !before.adds && !s.given[s.handed-1] && (before.from != next.from || before.to != next.to)
}

// strands are the stripes of an attempt at a Moved sum, the last first.
type strands []strand

// newStrands makes the strands of a participant; nil if these are no stripes.
func newStrands(a *attempt, of Stripes) (all strands) {
	for _, part := range of.list() {
		hands, takes := schedule(a.Op, a.rank, a.size, grains(a.Op, a.size))
		s := strand{stripe: part, hands: hands, given: make([]bool, len(hands)), begun: make([]bool, len(takes))}
		for _, t := range takes {
			s.takes = append(s.takes, taking{step: t})
		}
		all = append(all, s)
	}
	return all
}

func (all strands) complete() bool {
	return !slices.ContainsFunc(all, func(s strand) bool { return !s.complete() })
}

// last is the strand that has come least far.
func (all strands) last() *strand {
	last := &all[0]
	for i := range all {
		if all[i].taken < last.taken {
			last = &all[i]
		}
	}
	return last
}

// flying is the number of chunks in flight to the participant of a rank.
func (all strands) flying(rank int) (n int) {
	for i := range all {
		for h := range all[i].handed {
			if all[i].hands[h].peer == rank && !all[i].given[h] {
				n++
			}
		}
	}
	return n
}

// give sends the chunks that are ready.
func (all strands) give(a *attempt) {
	for i := range all {
		s := &all[i]
		for s.loaded && s.handed < len(s.hands) && !s.waits(a.Rounds) {
			h := s.hands[s.handed]
			if s.taken < h.after || all.flying(h.peer) >= chunksAhead {
				break
			}
			s.handed++
			chunk := s.chunk(a, h)
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

// Load is the stripes that the caller must add to what has come by now, if its numbers from one on are ready. Then it
// calls Loaded. It may load everything at once instead, before it accepts a chunk.
func (m *Moving) Load(from int) (due []Chunk) {
	for _, s := range m.a.strands {
		if !s.loaded && s.begins(m.a.Length, from) {
			due = append(due, Chunk{Part: s.at, Parts: s.of, Add: true})
		}
	}
	return due
}

// Loaded notes that the numbers from one on are there to be sent.
func (m *Moving) Loaded(now time.Duration, from int) {
	if m.over(now) {
		return
	}
	for i := range m.a.strands {
		if s := &m.a.strands[i]; s.begins(m.a.Length, from) {
			s.loaded = true
		}
	}
	m.a.strands.give(m.a)
	m.part.close()
}

// Accept tells whether to take a chunk that a member offers: each chunk that is due, once. Chunks that are added
// may come in any order, and before the member's own numbers are loaded; sending waits for them.
func (m *Moving) Accept(now time.Duration, from ID, chunk Chunk) bool {
	if s, i := m.taking(from, chunk); s != nil && !s.begun[i] && !m.over(now) {
		s.begun[i] = true
		return true
	}
	return false
}

// taking is the strand, and its take, in which a member sends a chunk.
func (m *Moving) taking(from ID, chunk Chunk) (*strand, int) {
	for i := range m.a.strands {
		s := &m.a.strands[i]
		for n, t := range s.takes {
			if s.chunk(m.a, t.step) == chunk && m.a.partner(t.peer) == from {
				return s, n
			}
		}
	}
	return nil, 0
}

// Took notes that an accepted chunk has come.
func (m *Moving) Took(now time.Duration, from ID, chunk Chunk) {
	s, i := m.taking(from, chunk)
	if s == nil || !s.begun[i] || m.over(now) {
		return
	}
	for s.takes[i].whole = true; s.taken < len(s.takes) && s.takes[s.taken].whole; s.taken++ {
	}
	m.moved()
}

// Gave notes that a member has received a chunk.
func (m *Moving) Gave(now time.Duration, to ID, chunk Chunk) {
	if m.over(now) {
		return
	}
	for i := range m.a.strands {
		s := &m.a.strands[i]
		for n, h := range s.hands[:s.handed] {
			if s.chunk(m.a, h) == chunk && m.a.partner(h.peer) == to {
				s.given[n] = true
			}
		}
	}
	m.moved()
}

func (m *Moving) moved() {
	m.a.strands.give(m.a)
	m.part.moved = m.part.m.now
	m.part.close()
}
