package sums

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// inquiry is what a coordinator asks the members.
type inquiry struct {
	inquires bool   // others may have followed another: what they say counts only as an answer
	question uint32 // to tell answers from those to an earlier lead
	answered map[ID]bool
	asked    time.Duration
}

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
