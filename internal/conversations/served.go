package conversations

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
)

// served is a stream that a partner has opened, with the further lanes if it carries an
// exchange. It is reused.
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

// admit adds the first lane of an exchange. No lane of the previous exchange is left.
func (s *served) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.used, s.serving = false, [replica.MaxLanes]bool{true}, 1
}

// admitted tells whether lanes are open or can still be opened.
func (s *served) admitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving > 0
}

// enter adds a lane. It returns false if no lane of that number can be added.
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

// idle tells whether no lane is being served, and whether no more can be added: the
// exchange is done or broken off.
func (s *served) idle() (idle, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving > 0 {
		return false, false
	}
	if !slices.Contains(s.used[:s.Lanes()], false) && !s.Done() {
		s.breakOff(session.ErrLaneMissing) // no further lane can come
	}
	s.closed = s.closed || s.Done() || s.cause() != nil
	return true, s.closed
}

// wait waits until every lane has ended. An agreed lane may not have been opened yet when
// the first has ended: wait gives it the time of the stall bound.
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

// sessions are the exchanges that this peer serves, by key, for their further lanes. The
// zero value is ready.
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

// remove removes an exchange, if it is still the one of its key: a partner may have asked
// for another with the same number.
func (s *sessions) remove(key Key, x *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] == x {
		delete(s.open, key)
	}
}

// enter adds a lane to the exchange of a key. It returns nil if no lane of that number can
// be added.
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
