package p2pnet

import (
	"sync"
	"time"
)

// maxLate is the longest that a read or write may outlast the deadline that its
// caller has set; of a short one it is at most an eighth.
const maxLate = time.Second

// timeoutError is a deadline that had passed before a call began.
type timeoutError struct{}

func (timeoutError) Error() string   { return "p2pnet: the deadline has passed" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// deadline sees to it that one direction of a stream always has a deadline: the
// caller's, or else one that moves ahead of the calls.
//
// yamux makes a timer each time it is given one. So it is given a later one than is
// asked for, and no other as long as that is not too late: who sets a deadline
// ahead of every frame pays for a look at the clock. It is never given an earlier
// one: a read that it interrupts may lose a window update, and the stream its pace.
type deadline struct {
	limit time.Duration // that of a call without a deadline of the caller's
	set   func(time.Time) error

	mu    sync.Mutex
	until time.Time // the caller's, or zero
	given time.Time // what yamux has
}

// before is called ahead of each read or write.
func (d *deadline) before() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.until.IsZero() {
		return d.keep(now)
	}
	if !d.until.After(now) {
		// Not left to yamux: past its deadline it would still hand out what it has
		// buffered, and lose the window update that goes with it.
		return timeoutError{}
	}
	return nil
}

// assign takes the caller's deadline; zero is none.
func (d *deadline) assign(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = t
	now := time.Now()
	switch {
	case t.IsZero():
		return d.keep(now)
	case t.After(now):
		return d.give(t, t.Add(min(t.Sub(now)/8, maxLate)))
	}
	return d.give(t, t)
}

// keep makes yamux wait at least limit and at most one and a half.
func (d *deadline) keep(now time.Time) error {
	return d.give(now.Add(d.limit), now.Add(d.limit+d.limit/2))
}

// give sees to it that yamux has a deadline between two times.
func (d *deadline) give(from, to time.Time) error {
	if !d.given.Before(from) && !d.given.After(to) {
		return nil
	}
	d.given = to
	return d.set(to)
}
