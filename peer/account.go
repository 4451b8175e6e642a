package peer

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// account is what all lives of one member have done: together they count as one peer,
// for no more than one could have done.
type account struct {
	earlier uint64 // by the lives before the newest
	life    uint64 // the newest, and what it has done
	steps   uint64
	resumed bool // steps include what earlier lives had done, up to a checkpoint
	rebirths
}

// done is the sum. What earlier lives did after the checkpoint that the newest came back
// with is counted as long as it is more.
func (a account) done() uint64 {
	if a.resumed {
		return max(a.earlier, a.steps)
	}
	return plus(a.earlier, a.steps)
}

// with is the account with what a record says; it counts up to ceiling, which is what one
// peer could have done.
func (a account) with(r seam.Record, ceiling uint64) account {
	if r.Incarnation < a.life {
		return a
	}
	if r.Incarnation > a.life {
		a.earlier, a.life, a.resumed = a.done(), r.Incarnation, r.Flags&flagResumed != 0
	}
	a.steps = min(r.Steps, ceiling)
	if !a.resumed {
		a.steps = min(a.steps, ceiling-min(a.earlier, ceiling))
	}
	return a
}

// lives are the account as a checkpoint keeps it: the newest life, and those before it as
// one.
func (a account) lives(id seam.PeerID) []Past {
	newest := Past{id, a.life, a.steps, a.resumed}
	if a.earlier == 0 || a.life == 0 {
		return []Past{newest}
	}
	return []Past{{id, a.life - 1, a.earlier, false}, newest}
}

// plus adds numbers that others have said: it stays at the highest.
func plus(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}

// A restart is a new life, and few peers have several in a minute. Two processes with one
// key outlive each other at each record.
const (
	twinLives  = 3
	twinWindow = time.Minute
	// twinReminder is the least time between two warnings of one member.
	twinReminder = time.Hour
)

// rebirths counts the new lives of a member in a while.
type rebirths struct {
	count  int
	since  time.Time // the window's begin
	many   time.Time // when there were last so many
	warned time.Time
}

// another counts one. It reports true if that makes it a twin, of which nothing was said for
// long.
func (b *rebirths) another(now time.Time) bool {
	if now.Sub(b.since) > twinWindow {
		b.count, b.since = 0, now
	}
	if b.count++; b.count < twinLives {
		return false
	}
	b.many = now
	if !b.warned.IsZero() && now.Sub(b.warned) < twinReminder {
		return false
	}
	b.warned = now
	return true
}

// twin tells whether there were lately so many that two processes must have one key.
func (b *rebirths) twin(now time.Time) bool {
	return !b.many.IsZero() && now.Sub(b.many) <= 2*twinWindow
}
