package peer

import "sync"

// underway are the exchanges that this peer takes part in, so that one that closes can
// break them all off. The zero value is ready.
type underway struct {
	mu     sync.Mutex
	broken bool
	all    map[*tracked]struct{}
	left   chan struct{} // closed when the next one leaves, if anybody waits for that
}

// enter takes an exchange up until leave. It reports false if it is too late.
func (u *underway) enter(x *tracked) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken {
		return false
	}
	if u.all == nil {
		u.all = make(map[*tracked]struct{})
	}
	u.all[x] = struct{}{}
	return true
}

func (u *underway) leave(x *tracked) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, x)
	if u.left != nil {
		close(u.left)
		u.left = nil
	}
}

// breakOff breaks off every exchange, and lets no other begin.
func (u *underway) breakOff() {
	u.mu.Lock()
	u.broken = true
	all := make([]*tracked, 0, len(u.all))
	for x := range u.all {
		all = append(all, x)
	}
	u.mu.Unlock()
	for _, x := range all {
		x.breakOff(errAborted)
	}
}
