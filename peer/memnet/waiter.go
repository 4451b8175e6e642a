package memnet

import "time"

// waiter lets one goroutine wait for a signal or a time. A signal that comes
// while nobody waits is kept, one at most, so the one who waits must look at the
// state again each time it wakes.
type waiter struct {
	epoch time.Time
	woken chan struct{}
	timer *time.Timer // made at the first wait for a time, then used again
}

func newWaiter(epoch time.Time) waiter {
	return waiter{epoch: epoch, woken: make(chan struct{}, 1)}
}

func (w *waiter) signal() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// wait returns at a signal, or at a time since the epoch.
func (w *waiter) wait(until time.Duration) {
	if until == never {
		<-w.woken
		return
	}
	left := time.Until(w.epoch.Add(until))
	if w.timer == nil {
		w.timer = time.NewTimer(left)
	} else {
		w.timer.Reset(left)
	}
	select {
	case <-w.woken:
	case <-w.timer.C:
	}
	w.timer.Stop()
}
