package sums

import (
	"math/bits"
	"slices"
	"testing"
	"time"
)

// heldLength is how many numbers a member of the world moves: not a power of two.
const heldLength = 37

// load makes ready what a member moves.
func (m *member) load(moving *Moving) {
	m.held, m.moving = make([]float64, heldLength), moving
	for i := range m.held {
		m.held[i] = float64(uint64(1) << m.index)
	}
	moving.Loaded(m.world.now)
}

// holds gives a result of what is moved its numbers.
func (m *member) holds(r *Result) {
	if m.isMoved(r.Name) && r.Err == nil {
		r.Vector = slices.Clone(m.held)
	}
}

func (m *member) isMoved(sum string) bool { return sum[len(sum)-1] == '4' }

// movedOf is by which shape so many members move a sum.
func movedOf(members int) Op { return []Op{Moved, MovedRing, MovedTree}[members%3] }

// run is where a chunk begins and ends.
func (p Chunk) run(length int) (from, to int) {
	return length * p.Part / p.Parts, length * (p.Part + 1) / p.Parts
}

// move carries a chunk: an offer, the numbers once it is accepted, and word that they are there.
func (w *world) move(from, to *member, p Chunk) {
	attempt := from.moving
	lost := func() bool { return from.dead || to.dead || from.moving != attempt }
	begin, end := p.run(heldLength)
	w.sent += uint64(4 * (end - begin))
	var offer func()
	offer = func() {
		if lost() {
			return
		}
		taking := to.moving
		switch {
		case taking == nil || taking.Attempt != attempt.Attempt:
			w.after(20*time.Millisecond, offer)
			return
		case !taking.Accept(w.now, from.self, p):
			w.after(w.upTo(w.delay), func() { from.Broken(w.now, to.self); from.settle() })
			return
		}
		numbers := slices.Clone(from.held[begin:end])
		w.after(w.upTo(w.delay), func() {
			if lost() || to.moving != taking {
				return
			}
			for i, v := range numbers {
				if p.Add {
					v += to.held[begin+i]
				}
				to.held[begin+i] = v
			}
			taking.Took(w.now, from.self, p)
			to.settle()
			w.after(w.upTo(w.delay), func() {
				if !lost() {
					attempt.Gave(w.now, to.self, p)
					from.settle()
				}
			})
		})
	}
	w.after(w.upTo(w.delay), offer)
}

// TestWhatIsMoved shows that a sum of what members move themselves is the same at all, whatever their number, and
// how much each sends.
func TestWhatIsMoved(t *testing.T) {
	for n := 1; n <= 40; n++ {
		op := movedOf(n)
		w := newWorld(t, uint64(n), n)
		for _, m := range w.members {
			m.calls = []Call{{Name: "sum 4", Op: op, Length: heldLength << (n % 20), Least: n, Timeout: time.Minute, Value: float64(n - m.index)}}
			w.after(w.upTo(time.Second), m.next)
		}
		w.run(time.Minute)
		for _, m := range w.members {
			if len(m.results) != 1 || m.results[0].Err != nil {
				t.Fatalf("%d members: %s has %+v", n, m.self, m.results)
			}
			r := m.results[0]
			if r.Peers != n || r.Value != 1 || slices.ContainsFunc(r.Vector, func(v float64) bool { return uint64(v) != 1<<n-1 }) {
				t.Errorf("%d members: %s has %+v", n, m.self, r)
			}
		}
		if most := uint64(2 * 4 * heldLength * max(n-1, 0)); w.sent > most+most/8 {
			t.Errorf("%d members sent %d bytes, want about %d", n, w.sent, most)
		}
	}
}

// TestChunksOfAStep shows that the chunks of each step are its numbers, each once, few and none tiny.
func TestChunksOfAStep(t *testing.T) {
	for n := 2; n <= 200; n++ {
		op := movedOf(n)
		for rank := range n {
			a := &attempt{Call: &Call{Op: op, Length: 1 << (10 + n%20)}, rank: rank, size: n}
			hands, _ := schedule(op, rank, n, grains(op, n))
			for _, h := range hands {
				if bits.OnesCount(uint(h.to-h.from)) != 1 || a.chunks.count(a, h) > mostChunks || a.chunks.count(a, h) > max(a.Length/chunkNumbers, 2) {
					t.Fatalf("%d members: step %+v in %d chunks", n, h, a.chunks.count(a, h))
				}
				at := h.from * heldLength / grains(op, n)
				for i := range a.chunks.count(a, h) {
					p, _ := a.chunks.at(a, h, i)
					from, to := p.run(heldLength)
					if from != at {
						t.Fatalf("%d members: step %+v: chunk %d begins at %d, want %d", n, h, i, from, at)
					}
					at = to
				}
				if at != h.to*heldLength/grains(op, n) {
					t.Errorf("%d members: step %+v ends at %d", n, h, at)
				}
			}
		}
	}
}
