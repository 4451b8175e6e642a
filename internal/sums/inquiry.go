package sums

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// inquiry is a coordinator's question to the members about their state.
type inquiry struct {
	inquires bool   // members may have followed another coordinator: only answers to this question count
	question uint32 // distinguishes its answers from those to an earlier lead
	answered map[ID]bool
	asked    time.Duration
	silence  search
}

// search searches a list from the last find on: earlier entries no longer match.
type search int

func (s *search) finds(ids []ID, is func(ID) bool) bool {
	for int(*s) < len(ids) && !is(ids[*s]) {
		*s++
	}
	return int(*s) < len(ids)
}

// informed tells whether all members have answered.
func (l *lead) informed() bool {
	return !l.unsaid(l.m.self) && !l.silence.finds(l.m.members, func(id ID) bool { return id != l.m.self && l.unsaid(id) })
}

// unsaid tells whether a member has not answered; this member has not while another coordinates
// its part.
func (l *lead) unsaid(id ID) bool {
	if own := l.m.open[l.name].own; id == l.m.self {
		return own != nil && own.leader != id
	}
	return !l.m.excused[id] && !l.answered[id] && (l.inquires || l.came[id] == nil && !(l.blame.thrown(id) && l.known[id]))
}

// silent are the members that have not answered.
func (l *lead) silent() []ID { return those(l.m.members, l.unsaid) }

// those are the ids for which something is true.
func those(ids []ID, is func(ID) bool) (found []ID) {
	for _, id := range ids {
		if is(id) {
			found = append(found, id)
		}
	}
	return found
}

// inquire asks the members that have not answered.
func (l *lead) inquire() {
	if l.m.now-l.asked < l.m.times.Retransmit {
		return
	}
	l.asked = l.m.now
	for _, id := range l.silent() {
		if id != l.m.self {
			l.m.tell(id, &wire.Sum{Kind: wire.SumAsk, Name: l.name, Question: l.question})
		}
	}
}
