package sums

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// mostNumbers is the most numbers in one share.
const mostNumbers = wire.MaxShare / wire.NumberSize

// numbers are the numbers of an attempt at Add, Max or Masked.
type numbers struct {
	values  []float64 // partial sums
	words   []uint64  // used instead in a masked sum
	handed  int       // hands that are complete
	sent    int       // numbers of the next hand
	spoiler ID        // the member that sent a number that is not finite before all had added theirs
}

// take takes a share.
func (n *numbers) take(a *attempt, from ID, s *wire.Share) bool {
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
	// A finished part replaces the numbers that this member sent to the same partner, which has received them by now.
	given := slices.IndexFunc(a.hands, func(h step) bool { return h.peer == t.peer })
	if i > a.taken && (t.adds || n.handed <= given) {
		t.early = append(slices.Grow(t.early, int(s.Total)-len(t.early)), s.Data...)
		return true
	}
	n.combine(a, t, s.Data)
	for !a.complete() && a.takes[a.taken].whole {
		if a.taken++; !a.complete() {
			n.combine(a, &a.takes[a.taken], nil)
		}
	}
	n.hand(a)
	return true
}

// hand sends the numbers that are ready, without a copy: they change only when a share is taken.
func (n *numbers) hand(a *attempt) {
	for ; n.handed < len(a.hands); n.handed, n.sent = n.handed+1, 0 {
		h := &a.hands[n.handed]
		if a.taken < h.after-1 {
			return
		}
		ready := a.ready(h)
		for last := false; !last; {
			at := h.from + n.sent
			end := min(at+mostNumbers, ready)
			if last = end == h.to; !last && end-at < mostNumbers {
				return
			}
			share := wire.Share{
				Name: a.Name, Attempt: a.number, Step: uint32(h.index),
				Offset: uint64(n.sent) * wire.NumberSize, Total: uint64(h.to-h.from) * wire.NumberSize,
			}
			if n.words != nil {
				share.Words = n.words[at:end]
			} else {
				share.Values = n.values[at:end]
			}
			a.send(a.partner(h.peer), share)
			n.sent += end - at
		}
	}
}

// combine adds a share's numbers, or replaces numbers by them, after those that came early.
func (n *numbers) combine(a *attempt, t *taking, data []byte) {
	if t.early != nil {
		data, t.early = append(t.early, data...), nil
	}
	s := wire.Share{Data: data}
	count, from := len(data)/wire.NumberSize, t.from+t.came
	t.came += count
	if n.words != nil {
		for i, had := range n.words[from : from+count] {
			if !t.adds {
				had = 0
			}
			n.words[from+i] = had + s.Word(i)
		}
		return
	}
	dst := n.values[from:][:count]
	odd := 0.0 // NaN once a number is not finite
	adds, op := t.adds, a.Op
	for i := 0; i < count && !adds; i++ {
		dst[i] = s.Number(i)
	}
	for i := 0; i < count && adds; i++ {
		came := s.Number(i)
		if odd += came - came; op.shapeless() == Add {
			dst[i] += came
		} else {
			dst[i] = max(dst[i], came)
		}
	}
	if odd != 0 && n.spoiler == "" {
		n.spoiler = a.partner(t.peer)
	}
}
