package p2pnet

import (
	"sync"
	"time"
)

// maxLate bounds how long after its caller's deadline a read or write may end;
// after a short timeout, the bound is an eighth of the timeout.
const maxLate = time.Second

// timeoutError says that a deadline had passed before a call began.
type timeoutError struct{}

func (timeoutError) Error() string   { return "p2pnet: the deadline has passed" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// deadline keeps a deadline on one direction of a stream at all times: the
// caller's, or else one that each call moves into the future.
//
// yamux makes a timer for each deadline. So yamux gets a later deadline than the caller
// asked for, and a new one only if that would be too late: a caller that sets a deadline
// before every frame pays for one reading of the clock. yamux never gets an earlier
// deadline: a read that it interrupts may lose a window update, which slows the stream down.
type deadline struct {
	limit time.Duration // timeout of a call for which the caller set no deadline
	set   func(time.Time) error

	mu    sync.Mutex
	until time.Time // deadline of the caller, or zero
	given time.Time // deadline that yamux has
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

// assign sets the caller's deadline; zero means none.
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

// keep makes yamux wait at least limit and at most one and a half times limit.
func (d *deadline) keep(now time.Time) error {
	return d.give(now.Add(d.limit), now.Add(d.limit+d.limit/2))
}

// give sets yamux's deadline unless it already lies between two times.
func (d *deadline) give(from, to time.Time) error {
	if !d.given.Before(from) && !d.given.After(to) {
		return nil
	}
	d.given = to
	return d.set(to)
}
