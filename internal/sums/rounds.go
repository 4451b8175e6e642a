package sums

import (
	"math/bits"
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
	// stepTold is what a step counts in what others are told of progress.
	stepTold = 1 << 12
	// mostNumbers are those of one share.
	mostNumbers = wire.MaxShare / wire.NumberSize
)

// attempt is a participant's part of one attempt, by its schedule. It hands on each share as soon as
// what it has taken lets it.
type attempt struct {
	*Call
	number     uint64
	rank, size int
	ranks      []int // of partners
	partners   []ID
	hands      []step
	takes      []taking
	send       func(to ID, share wire.Share)

	taken  int // takes that are complete, in order
	handed int // hands that are, of numbers
	sent   int // numbers of the next

	values []float64 // of Add and Max, as far as they are summed
	blocks [][]byte  // of Gather, by rank
	totals []int     // bytes of each, -1 if none has come
	bytes  uint64    // of all that are here

	spoiler ID  // who handed on a number that is not finite before all had added theirs
	excess  int // rank of who brought most, if all bring too much; else -1
}

// taking is a step that is taken, and what has come of it.
type taking struct {
	step
	came  int    // numbers, or whole blocks
	whole bool   // that is all
	early []byte // numbers that came before it is their turn
}

// newAttempt takes a place of a call, or is nil if that has more or fewer partners than its schedule.
func newAttempt(call *Call, place *wire.Sum, send func(to ID, share wire.Share)) *attempt {
	a := &attempt{Call: call, number: place.Attempt, rank: int(place.Rank), size: int(place.Size), send: send, excess: -1}
	hands, takes := schedule(a.Op, a.rank, a.size, len(call.Vector))
	if a.ranks = partners(hands, takes); len(a.ranks) != len(place.Partners) {
		return nil
	}
	for _, id := range place.Partners {
		a.partners = append(a.partners, ID(id))
	}
	a.hands, a.takes = hands, make([]taking, len(takes))
	for i, s := range takes {
		a.takes[i].step = s
	}
	if a.Op != Gather {
		a.values = slices.Clone(call.Vector)
		return a
	}
	a.blocks, a.totals = make([][]byte, a.size), slices.Repeat([]int{-1}, a.size)
	a.blocks[a.rank], a.totals[a.rank], a.bytes = slices.Clone(call.Data), len(call.Data), uint64(len(call.Data))
	return a
}

// has tells whether a member is a partner.
func (a *attempt) has(member ID) bool { return slices.Contains(a.partners, member) }

func (a *attempt) partner(rank int) ID { return a.partners[slices.Index(a.ranks, rank)] }

// complete tells whether the sum is here.
func (a *attempt) complete() bool { return a.taken == len(a.takes) }

// awaits is from whom something comes next.
func (a *attempt) awaits() ID { return a.partner(a.takes[a.taken].peer) }

// progress is how much has come, in steps.
func (a *attempt) progress() uint32 {
	if a.complete() {
		return uint32(a.taken) * stepTold
	}
	t := &a.takes[a.taken]
	share := float64(t.came)
	for beyond := t.from; beyond < t.to && a.Op == Gather; beyond++ {
		if rank := (a.rank + beyond) % a.size; len(a.blocks[rank]) < a.totals[rank] {
			share += float64(len(a.blocks[rank])) / float64(a.totals[rank])
		}
	}
	return uint32((float64(a.taken) + min(share/float64(max(t.to-t.from, 1)), 1-1.0/stepTold)) * stepTold)
}

// begin sends what needs nothing from others.
func (a *attempt) begin() {
	if a.Op != Gather {
		a.hand()
		return
	}
	data := a.blocks[a.rank]
	for offset := 0; offset == 0 || offset < len(data); offset += wire.MaxShare {
		a.pass(0, offset, len(data), data[offset:min(offset+wire.MaxShare, len(data))])
	}
}

// take takes a share, and sends on what that lets it. It reports false if that is not what comes next of its
// sender.
func (a *attempt) take(from ID, s *wire.Share) bool {
	if len(s.Data) == 0 && s.Total > 0 {
		return false
	}
	if a.Op == Gather {
		return a.takeBlock(from, s)
	}
	i := slices.IndexFunc(a.takes, func(t taking) bool { return t.index == int(s.Step) && a.partner(t.peer) == from })
	if i < 0 {
		return false
	}
	t := &a.takes[i]
	offset := wire.NumberSize*t.came + len(t.early)
	if t.whole || s.Offset != uint64(offset) || s.Total != uint64(t.to-t.from)*wire.NumberSize || len(s.Data)%wire.NumberSize != 0 {
		return false
	}
	t.whole = offset+len(s.Data) == int(s.Total)
	// What all have added takes the place of what its sender has had of this one, and has it by now.
	given := slices.IndexFunc(a.hands, func(h step) bool { return h.peer == t.peer })
	if i > a.taken && (t.adds || a.handed <= given) {
		t.early = append(slices.Grow(t.early, int(s.Total)-len(t.early)), s.Data...)
		return true
	}
	a.combine(t, s.Data)
	for !a.complete() && a.takes[a.taken].whole {
		if a.taken++; !a.complete() {
			a.combine(&a.takes[a.taken], nil)
		}
	}
	a.hand()
	return true
}

// hand sends the numbers that can be sent, themselves, no copy: they change again only when something is
// taken.
func (a *attempt) hand() {
	for ; a.handed < len(a.hands); a.handed, a.sent = a.handed+1, 0 {
		h := &a.hands[a.handed]
		ready := h.to
		switch {
		case a.taken < h.after-1:
			return
		case a.taken < h.after: // it is of what is being taken, or of what is here
			t := &a.takes[a.taken]
			ready = min(h.to, t.from+t.came)
		}
		for last := false; !last; {
			at := h.from + a.sent
			end := min(at+mostNumbers, ready)
			if last = end == h.to; !last && end-at < mostNumbers {
				return
			}
			a.send(a.partner(h.peer), wire.Share{
				Name: a.Name, Attempt: a.number, Step: uint32(h.index),
				Offset: uint64(a.sent) * wire.NumberSize, Total: uint64(h.to-h.from) * wire.NumberSize, Values: a.values[at:end],
			})
			a.sent += end - at
		}
	}
}

// combine takes numbers as those before have summed them, or as they all are, after those that came early.
func (a *attempt) combine(t *taking, data []byte) {
	if t.early != nil {
		data, t.early = append(t.early, data...), nil
	}
	s := wire.Share{Data: data}
	n := len(data) / wire.NumberSize
	dst := a.values[t.from+t.came:][:n]
	t.came += n
	odd := 0.0 // NaN once a number is not finite
	adds, op := t.adds, a.Op
	for i := 0; i < n && !adds; i++ {
		dst[i] = s.Number(i)
	}
	for i := 0; i < n && adds; i++ {
		came := s.Number(i)
		if odd += came - came; op == Add {
			dst[i] += came
		} else {
			dst[i] = max(dst[i], came)
		}
	}
	if odd != 0 && a.spoiler == "" {
		a.spoiler = a.partner(t.peer)
	}
}

// pass hands on bytes of the block of the rank that is so far beyond this one's.
func (a *attempt) pass(beyond, offset, total int, data []byte) {
	for _, h := range a.hands[bits.Len(uint(beyond)):] {
		if step := beyond + 1<<h.index; step < h.to {
			a.send(a.partner(h.peer), wire.Share{
				Name: a.Name, Attempt: a.number, Step: uint32(step - 1), Offset: uint64(offset), Total: uint64(total), Data: data,
			})
		}
	}
}

// takeBlock takes bytes of a block. Those of several come side by side.
func (a *attempt) takeBlock(from ID, s *wire.Share) bool {
	if uint64(s.Step) >= uint64(a.size-1) || s.Total > MaxGather || a.excess >= 0 {
		return false
	}
	beyond := int(s.Step) + 1
	i := bits.Len(uint(beyond)) - 1
	if a.partner(a.takes[i].peer) != from {
		return false
	}
	rank := (a.rank + beyond) % a.size
	total, here := &a.totals[rank], len(a.blocks[rank])
	first := *total < 0
	if s.Offset != uint64(here) || !first && (uint64(*total) != s.Total || here == *total) {
		return false
	}
	if *total = int(s.Total); first && a.exceeds() {
		return false
	}
	a.blocks[rank], a.bytes = append(a.blocks[rank], s.Data...), a.bytes+uint64(len(s.Data))
	if here+len(s.Data) == *total {
		t := &a.takes[i]
		t.came++
		t.whole = t.came == t.to-t.from
	}
	for !a.complete() && a.takes[a.taken].whole {
		a.taken++
	}
	if beyond+1<<(i+1) < a.size {
		a.pass(beyond, here, *total, slices.Clone(s.Data))
	}
	return true
}

// exceeds tells whether all bring too much, and notes who most.
func (a *attempt) exceeds() bool {
	together := 0
	for _, total := range a.totals {
		together += max(total, 0)
	}
	if together > MaxGathered {
		a.excess = slices.Index(a.totals, slices.Max(a.totals))
	}
	return together > MaxGathered
}
