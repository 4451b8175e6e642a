package sums

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// MaxGather is the most bytes that one member may bring to a Gather, MaxGathered those that all
	// may bring together.
	MaxGather   = 64 << 20
	MaxGathered = 8 * MaxGather
	// MaxLength is the most numbers in a sum.
	MaxLength = 1 << 27
	// progressStep is the weight of a step in reported progress.
	progressStep = 1 << 12
)

// attempt is a participant's part in one attempt, by its schedule. It sends each share as soon as
// the shares that it needs have come.
type attempt struct {
	*Call
	number     uint64
	rank, size int
	ranks      []int // of partners
	partners   []ID
	hands      []step
	takes      []taking
	emit       func(Outcome)

	taken   int // takes that are complete, in order
	numbers numbers
	blocks  blocks
	strands strands
}

// taking is a step that is being received.
type taking struct {
	step
	came  int    // numbers, or whole blocks
	whole bool   // everything has come
	early []byte // numbers that came before their turn
}

// newAttempt makes the attempt of a place; nil if the place has the wrong number of partners for its schedule.
func newAttempt(call *Call, place *wire.Sum, emit func(Outcome)) *attempt {
	a := &attempt{Call: call, number: place.Attempt, rank: int(place.Rank), size: int(place.Size), emit: emit}
	hands, takes := schedule(a.Op, a.rank, a.size, int(call.length()))
	if a.ranks = partners(hands, takes); len(a.ranks) != len(place.Partners) {
		return nil
	}
	for _, id := range place.Partners {
		a.partners = append(a.partners, ID(id))
	}
	if a.Op.moved() {
		if a.strands = newStrands(a, Stripes(place.Length)); a.strands == nil {
			return nil
		}
		return a
	}
	a.hands, a.takes = hands, make([]taking, len(takes))
	for i, s := range takes {
		a.takes[i].step = s
	}
	switch {
	case a.Op == Gather:
		a.blocks = newBlocks(a)
	case !a.Op.masked(): // those of a masked sum are hidden first
		a.numbers.values = slices.Clone(call.Vector)
	}
	return a
}

// has tells whether a member is a partner.
func (a *attempt) has(member ID) bool { return slices.Contains(a.partners, member) }

func (a *attempt) partner(rank int) ID { return a.partners[slices.Index(a.ranks, rank)] }

func (a *attempt) send(to ID, share wire.Share) { a.emit(Outcome{To: to, Share: &share}) }

// complete tells whether the sum is here and, for a Moved sum, no partner still needs it from here.
func (a *attempt) complete() bool {
	if a.Op.moved() {
		return a.strands.complete()
	}
	return a.taken == len(a.takes)
}

// awaits is the member whose share comes next, "" if there is none.
func (a *attempt) awaits() ID {
	if a.Op.moved() {
		if s := a.strands.last(); s.taken < len(s.takes) {
			return a.partner(s.takes[s.taken].peer)
		}
		return ""
	}
	if a.taken < len(a.takes) {
		return a.partner(a.takes[a.taken].peer)
	}
	return ""
}

// ready is the end of the numbers of a hand that can be sent.
func (a *attempt) ready(h *step) int {
	switch {
	case a.taken < h.after-1:
		return h.from
	case a.taken < h.after: // it depends on the step being taken
		t := &a.takes[a.taken]
		return min(h.to, t.from+t.came)
	}
	return h.to
}

// progress is how much has come, in steps; of a Moved sum, of the stripe that has come least far.
func (a *attempt) progress() uint32 {
	if a.Op.moved() {
		return uint32(a.strands.last().taken) * progressStep
	}
	if a.taken == len(a.takes) {
		return uint32(a.taken) * progressStep
	}
	t := &a.takes[a.taken]
	share := float64(t.came)
	if a.Op == Gather {
		share += a.blocks.begun(a, t)
	}
	return uint32((float64(a.taken) + min(share/float64(max(t.to-t.from, 1)), 1-1.0/progressStep)) * progressStep)
}

// begin sends the shares that need nothing from others.
func (a *attempt) begin() {
	switch {
	case a.Op == Gather:
		a.blocks.begin(a)
	case !a.Op.moved():
		a.numbers.hand(a)
	}
}

// take takes a share, and sends what has become ready. It returns false if it is not the next share of its
// sender.
func (a *attempt) take(from ID, s *wire.Share) bool {
	switch {
	case len(s.Data) == 0 && s.Total > 0:
		return false
	case a.Op == Gather:
		return a.blocks.take(a, from, s)
	}
	return a.numbers.take(a, from, s)
}

// next advances over the steps that are complete.
func (a *attempt) next() {
	for a.taken < len(a.takes) && a.takes[a.taken].whole {
		a.taken++
	}
}
