package collective

import (
	"slices"

	"github.com/seed-97356399/murmuration/topology"
)

// ring is one peer's part of a ring reduce-scatter and all-gather. The Sum is cut into
// size chunks. At step s a member sends chunk rank-s to the next,
// which has it from the one before since step s-1: added in the first size-1 steps, after
// which each member holds one chunk that is complete, replaced in the next size-1.
type ring struct {
	attempt    uint64
	rank, size int
	next       topology.PeerID
	previous   topology.PeerID
	offered    []bool // by step: taken on or in
	taken      int    // complete, inbound
	sent       int    // complete, outbound
}

// newRing is the ring of an attempt, at a place between two others. The memory of a former
// one is used again.
func newRing(attempt uint64, at Place, next, previous topology.PeerID, former ring) ring {
	r := ring{attempt: attempt, rank: at.Rank, size: at.Size, next: next, previous: previous}
	r.offered = slices.Grow(former.offered[:0], r.steps())[:r.steps()]
	clear(r.offered)
	return r
}

func (r *ring) steps() int { return 2 * (r.size - 1) }

func (r *ring) complete() bool { return r.taken == r.steps() && r.sent == r.steps() }

// transfer is what is sent at a step.
func (r *ring) transfer(step int) Transfer {
	chunk := ((r.rank-step)%r.size + r.size) % r.size
	return Transfer{
		From: Sum, Into: Sum, Add: step < r.size-1,
		Part: chunk, Parts: r.size, Round: r.attempt,
	}
}

// place is the step at which the previous member sends a transfer. It reports false for
// what it does not send.
func (r *ring) place(t Transfer) (step int, ok bool) {
	fits := t.From == Sum && t.Into == Sum && t.Round == r.attempt &&
		r.size > 1 && t.Parts == r.size && t.Part >= 0 && t.Part < t.Parts
	if !fits {
		return 0, false
	}
	step = ((r.rank-1-t.Part)%r.size + r.size) % r.size
	switch {
	case t.Add:
		return step, step < r.size-1
	case step < r.size-1:
		step += r.size
	}
	return step, step < r.steps()
}

// take notes that a transfer is being taken in. It reports false if it is another's than
// the previous member's, is not due, or was taken in before.
func (r *ring) take(from topology.PeerID, t Transfer) bool {
	step, ok := r.place(t)
	if !ok || from != r.previous || r.offered[step] {
		return false
	}
	r.offered[step] = true
	return true
}

// after is the step at which what came by a transfer is sent on; it reports false if
// that is nowhere.
func (r *ring) after(t Transfer) (step int, ok bool) {
	step, ok = r.place(t)
	return step + 1, ok && step+1 < r.steps()
}
