package conversations

import (
	"sync"
)

// underway are the exchanges that this peer takes part in, so that a closing peer can break
// them all off. The zero value is ready.
type underway struct {
	mu     sync.Mutex
	broken bool
	all    map[*Ongoing]struct{}
	left   chan struct{} // closed when the next one leaves, if a goroutine waits for that
}

// enter adds an exchange until leave. It returns false after BreakOff.
func (u *underway) enter(x *Ongoing) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken {
		return false
	}
	if u.all == nil {
		u.all = make(map[*Ongoing]struct{})
	}
	u.all[x] = struct{}{}
	return true
}

func (u *underway) leave(x *Ongoing) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, x)
	if u.left != nil {
		close(u.left)
		u.left = nil
	}
}

// BreakOff breaks off every exchange, and lets no other begin.
func (u *underway) BreakOff() {
	u.mu.Lock()
	u.broken = true
	all := make([]*Ongoing, 0, len(u.all))
	for x := range u.all {
		all = append(all, x)
	}
	u.mu.Unlock()
	for _, x := range all {
		x.Abandon()
	}
}

// Busy tells whether an exchange is under way.
func (u *underway) Busy() bool { return u.kept() > 0 }

// Wait waits until no exchange is under way.
func (u *underway) Wait() {
	for {
		u.mu.Lock()
		left := make(chan struct{})
		if len(u.all) == 0 {
			u.mu.Unlock()
			return
		}
		u.left = left
		u.mu.Unlock()
		<-left
	}
}

// kept is the number of exchanges under way.
func (u *underway) kept() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}
