package counters

import (
	"context"
	"time"
)

// standstillTick is how often a peer sees that its process runs. What is late by less than
// that is the scheduler's.
const standstillTick = 500 * time.Millisecond

// standstill notices from ticks that come late that the process stood still: it was
// stopped, or had no processor. A trainer that computes a gradient just then cannot tell
// that from a gradient that takes long.
type standstill struct{ last time.Time }

// tick takes a tick and returns for how long the process stood still before it, 0 if it
// did not.
func (s *standstill) tick(now time.Time) (stood time.Duration) {
	if late := now.Sub(s.last) - standstillTick; !s.last.IsZero() && late >= standstillTick {
		stood = late
	}
	s.last = now
	return stood
}

// WatchStandstill counts, until a context ends, the time for which the process stood still
// as one for which the trainer was kept from its work, if it was at work.
func WatchStandstill(ctx context.Context, t *Counters, atWork func() bool) {
	ticker := time.NewTicker(standstillTick)
	defer ticker.Stop()
	for ticks := (standstill{time.Now()}); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if stood := ticks.tick(time.Now()); atWork() {
				t.Held(stood)
			}
		}
	}
}
