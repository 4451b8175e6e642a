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
		known := l.m.asleep[id] || l.answered[id] || !l.inquires && l.find(id) != nil
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
