package baseline

import (
	"math/bits"

	"github.com/seed-97356399/murmuration/internal/collective"
)

// eighths is how finely a push is divided: a part is one of 1, 2, 4 or 8. Where nothing is known of values that are
// ready before the others, a push is one part.
const eighths = 8

// push is what has become of a worker's gradient, by eighths of the values that the server serves.
type push struct {
	ready, sent, gone uint8 // a bit for each eighth: it can be sent, is on its way, the server has it or will not take it
	broken            bool  // the server may not know that it has all of it
}

// all is the bits of all eighths.
const all uint8 = 1<<eighths - 1

// eighthsOf are the eighths that a transfer carries, 0 if it carries no such part.
func eighthsOf(t collective.Transfer) uint8 {
	if t.Parts < 1 || t.Parts > eighths || bits.OnesCount(uint(t.Parts)) != 1 || t.Part < 0 || t.Part >= t.Parts {
		return 0
	}
	width := eighths / t.Parts
	return (1<<width - 1) << (t.Part * width)
}

// pushes tells whether a transfer carries a part of a gradient into the server's sum.
func pushes(t collective.Transfer) bool {
	return t.From == collective.Gradient && t.Into == collective.Sum && t.Add && eighthsOf(t) != 0
}

// next is the largest part, the last first, of what can be sent and is not on its way.
func (p *push) next() (t collective.Transfer, found bool) {
	for parts := 1; parts <= eighths; parts *= 2 {
		for part := parts - 1; part >= 0; part-- {
			t = collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Part: part, Parts: parts}
			if which := eighthsOf(t); which&p.ready&^p.sent == which {
				return t, true
			}
		}
	}
	return t, false
}

// portion is the share of the values that a server serves: one of so many.
type portion struct{ length, part, parts int }

// SetLength implements collective.Sized.
func (s *portion) SetLength(values int, _ bool) { s.length = values }

// from are the eighths that lie at a value or beyond it.
func (s *portion) from(value int) (ready uint8) {
	for i := range eighths {
		if uint64(s.part*eighths+i)*uint64(s.length) >= uint64(value)*uint64(eighths*s.parts) {
			ready |= 1 << i
		}
	}
	return ready
}
