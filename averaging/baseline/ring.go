package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// ring is one peer's part of a ring reduce-scatter and all-gather. The Sum is cut into
// size chunks of lanes parts each. At step s a member sends chunk rank-s to the next,
// which has it from the one before since step s-1: added in the first size-1 steps, after
// which each member holds one chunk that is complete, replaced in the next size-1. The
// parts of a chunk travel independently of each other.
type ring struct {
	attempt    uint64
	rank, size int
	lanes      int
	next       topology.PeerID
	previous   topology.PeerID
	offered    []bool // by step and lane: taken on or in
	taken      int    // complete, inbound
	sent       int    // complete, outbound
}

// newRing is the ring of an attempt, at a place between two others. The memory of a former
// one is used again.
func newRing(attempt uint64, at place, next, previous topology.PeerID, former ring) ring {
	r := ring{attempt: attempt, rank: at.rank, size: at.size, lanes: at.lanes, next: next, previous: previous}
	r.offered = slices.Grow(former.offered[:0], r.total())[:r.total()]
	clear(r.offered)
	return r
}

func (r *ring) steps() int { return 2 * (r.size - 1) }

func (r *ring) total() int { return r.steps() * r.lanes }

func (r *ring) complete() bool { return r.taken == r.total() && r.sent == r.total() }

// transfer is what is sent at a step in a lane.
func (r *ring) transfer(step, lane int) averaging.Transfer {
	chunk := ((r.rank-step)%r.size + r.size) % r.size
	return averaging.Transfer{
		From: averaging.Sum, Into: averaging.Sum, Add: step < r.size-1,
		Part: chunk*r.lanes + lane, Parts: r.size * r.lanes, Round: r.attempt,
	}
}

// place is the step and lane at which the previous member sends a transfer. It reports
// false for what it does not send.
func (r *ring) place(t averaging.Transfer) (step, lane int, ok bool) {
	fits := t.From == averaging.Sum && t.Into == averaging.Sum && t.Round == r.attempt &&
		r.size > 1 && t.Parts == r.size*r.lanes && t.Part >= 0 && t.Part < t.Parts
	if !fits {
		return 0, 0, false
	}
	chunk, lane := t.Part/r.lanes, t.Part%r.lanes
	step = ((r.rank-1-chunk)%r.size + r.size) % r.size
	switch {
	case t.Add:
		return step, lane, step < r.size-1
	case step < r.size-1:
		step += r.size
	}
	return step, lane, step >= r.size-1 && step < r.steps()
}

// take notes that a transfer is being taken in. It reports false if it is another's than
// the previous member's, is not due, or was taken in before.
func (r *ring) take(from topology.PeerID, t averaging.Transfer) bool {
	step, lane, ok := r.place(t)
	if !ok || from != r.previous || r.offered[step*r.lanes+lane] {
		return false
	}
	r.offered[step*r.lanes+lane] = true
	return true
}

// after is the step at which what came by a transfer is sent on; it reports false if
// that is nowhere.
func (r *ring) after(t averaging.Transfer) (step, lane int, ok bool) {
	step, lane, ok = r.place(t)
	return step + 1, lane, ok && step+1 < r.steps()
}
