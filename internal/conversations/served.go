package conversations

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
)

// served is a stream that a partner has opened, with the further lanes of the exchange that
// it is of, if it is. It is reused.
type served struct {
	session.Served
	*Ongoing               // nil until the partner has asked for an exchange or a transfer
	changed  chan struct{} // holds a token if a lane has come or gone

	mu      sync.Mutex
	closed  bool                   // no lane can come any more
	used    [replica.MaxLanes]bool // lanes that have been opened
	serving int                    // lanes that are being served
}

func newServed() *served { return &served{changed: make(chan struct{}, 1)} }

// admit takes the first lane of an exchange up. No lane of the one before is left.
func (s *served) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.used, s.serving = false, [replica.MaxLanes]bool{true}, 1
}

// admitted tells whether lanes can come, or are here.
func (s *served) admitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving > 0
}

// enter takes a lane up. It reports false if there is none of that number to take.
func (s *served) enter(lane int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || lane >= s.Lanes() || s.used[lane] {
		return false
	}
	s.used[lane] = true
	s.serving++
	wake(s.changed)
	return true
}

// idle tells whether no lane is being served, and whether none can be taken up any more:
// the exchange is done or broken off.
func (s *served) idle() (idle, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving > 0 {
		return false, false
	}
	if !slices.Contains(s.used[:s.Lanes()], false) && !s.Done() {
		s.breakOff(session.ErrLaneMissing) // no further one can come
	}
	s.closed = s.closed || s.Done() || s.cause() != nil
	return true, s.closed
}

// wait waits until every lane has ended. One that was agreed may still be on its way when
// the first has ended: it is waited for within the stall bound.
func (s *served) wait(stall time.Duration) {
	if _, closed := s.idle(); closed {
		return
	}
	timeout := time.NewTimer(stall)
	defer timeout.Stop()
	for {
		idle, closed := s.idle()
		if closed {
			return
		}
		select {
		case <-s.changed:
		case <-timeout.C:
			if idle {
				s.breakOff(session.ErrLaneMissing)
			}
		}
		timeout.Reset(stall)
	}
}

// sessions are the exchanges that this peer serves, where further lanes find them.
// The zero value is ready.
type sessions struct {
	mu   sync.Mutex
	open map[Key]*served
}

func (s *sessions) add(key Key, x *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[Key]*served)
	}
	s.open[key] = x
}

// remove forgets an exchange, if it is the one of its key: a partner may have asked for
// another by the number of one under way.
func (s *sessions) remove(key Key, x *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] == x {
		delete(s.open, key)
	}
}

// enter takes up a lane of the exchange of a key. It returns nil if there is none of
// that number to take.
func (s *sessions) enter(key Key, lane int) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.open[key]; x != nil && x.enter(lane) {
		return x
	}
	return nil
}

// kept is the number of exchanges that lanes can find.
func (s *sessions) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
