package sums

import (
	"strings"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// informed tells whether all members have said what they know.
func (l *lead) informed() bool { return len(l.silent()) == 0 }

// silent are those who have not said what they know, this one among them while another
// coordinates its part.
func (l *lead) silent() (silent []ID) {
	for _, id := range l.m.members {
		known := l.m.asleep[id] || l.answered[id] || !l.inquires && (l.came.find(id) != nil || l.blame.out[id] && l.known[id])
		if own := l.m.open[l.name].own; id == l.m.self {
			known = own == nil || own.leader == id
		}
		if !known {
			silent = append(silent, id)
		}
	}
	return silent
}

// inquire asks those who have not said what they know.
func (l *lead) inquire() {
	if l.m.now-l.asked < sayAgain {
		return
	}
	l.asked = l.m.now
	for _, id := range l.silent() {
		if id != l.m.self {
			l.m.tell(id, &wire.Sum{Kind: wire.SumAsk, Name: l.name, Question: l.question})
		}
	}
}

// short is the end of an id, which tells members apart.
func short(id ID) string {
	const most = 8
	if len(id) > most {
		return "…" + string(id[len(id)-most:])
	}
	return string(id)
}

func shorts(ids []ID) string {
	const most = 3
	var names []string
	for i, id := range ids {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, short(id))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// asked answers a coordinator that wants to know how far this member is, and a participant that wants to know
// whether it has a part in the sum.
func (m *Machine) asked(from ID, w *wire.Sum) {
	answer := &wire.Sum{Kind: wire.SumNone, Name: w.Name}
	s := m.open[w.Name]
	if w.Stage > 0 { // a participant does
		if s == nil || s.own == nil {
			m.tell(from, answer)
		}
		return
	}
	switch e, over := m.over.Get(w.Name); {
	case over && e.attempt > 0:
		answer.Kind, answer.Attempt = wire.SumDone, e.attempt
	case m.leader != "" && m.leader != from:
		answer.Kind, answer.Next = wire.SumLeader, string(m.leader)
	case s != nil && s.lead != nil:
		return // one of both finds that it does not coordinate
	case s != nil && s.own != nil:
		if s.own.follow(); s.own.leader != from {
			return // it asks again, and the one that this member follows may be gone by then
		}
		s.own.term++ // that of before may have been told to one with the same id
		answer = s.own.status()
	}
	answer.Question = w.Question
	m.tell(from, answer)
}
