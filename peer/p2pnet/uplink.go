package p2pnet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Uplink is what a machine, or a part of it, may send a second. The transports that have shares of it
// divide it by their weights whenever several have something to send; what one leaves, the others
// use. Within a share, connections take turns. Safe for concurrent use.
//
// It is start-time fair queueing (Goyal, Vin and Cheng, 1996) over whole writes: each share has a tag
// that grows with what it sends, divided by its weight, and the write with the lowest goes first.
type Uplink struct {
	rate float64 // bytes a second

	mu      sync.Mutex
	virtual float64   // tag of the last write that was let through
	free    time.Time // when all that was let through has been sent
	busy    bool      // that is yet to come, and a timer waits for it
	waiting []*write
}

// uplinkBurst is how far an uplink that was idle may run ahead of its rate, so that short messages of
// a peer that sends little never wait.
const uplinkBurst = 5 * time.Millisecond

// uplinkTimeout is how long a message may wait for an uplink before its connection counts as dead: a
// busy one with a dozen connections sends 256 KiB of each in that time at 25 kB/s.
const uplinkTimeout = 2 * time.Minute

// NewUplink returns an uplink of so many bytes a second, above 0. What counts is what connections
// carry, encryption and control messages included, but not the headers of TCP and IP.
func NewUplink(bytesPerSecond float64) (*Uplink, error) {
	if !(bytesPerSecond > 0) || math.IsInf(bytesPerSecond, 0) {
		return nil, fmt.Errorf("p2pnet: an uplink of %v bytes a second: want a positive number", bytesPerSecond)
	}
	return &Uplink{rate: bytesPerSecond}, nil
}

// Share is a part of an uplink, of weight 1, for Config.Uplink.
func (u *Uplink) Share() *UplinkShare { return &UplinkShare{uplink: u, weight: 1} }

// Rate is what the whole uplink takes, in bytes a second; 0 for a nil share, which has no bound.
func (s *UplinkShare) Rate() float64 {
	if s == nil {
		return 0
	}
	return s.uplink.rate
}

// UplinkShare is a part of an Uplink.
type UplinkShare struct {
	uplink *Uplink
	// The uplink guards these.
	weight      float64
	begun, sent float64 // the tag of its last write, and the bytes of that
}

// mostWeight bounds weights, and 1/mostWeight.
const mostWeight = 1024

// SetWeight changes the weight from now on. With one by what is left of each run, of two runs the one
// nearer its end is hardly slowed. Weights are within 1/1024 and 1024; NaN counts as 1.
func (s *UplinkShare) SetWeight(weight float64) {
	if math.IsNaN(weight) {
		weight = 1
	}
	s.uplink.mu.Lock()
	defer s.uplink.mu.Unlock()
	s.weight = min(max(weight, 1.0/mostWeight), mostWeight)
}

// write waits for its turn.
type write struct {
	tag   float64
	bytes int
	turn  chan struct{} // closed when it has come
}

// send waits until so many bytes may be sent, until gone is closed, or until the deadline, if there is
// one: what is written then fails.
func (s *UplinkShare) send(bytes int, gone <-chan struct{}, deadline time.Time) {
	var late <-chan time.Time
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	u := s.uplink
	u.mu.Lock()
	w := &write{tag: max(u.virtual, s.begun+s.sent/s.weight), bytes: bytes, turn: make(chan struct{})}
	s.begun, s.sent = w.tag, float64(bytes)
	u.waiting = append(u.waiting, w)
	if !u.busy {
		u.next()
	}
	u.mu.Unlock()
	select {
	case <-w.turn:
	case <-gone:
	case <-late:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = slices.DeleteFunc(u.waiting, func(other *write) bool { return other == w }) // if it is given up
}

// next lets the first of those that wait through, and the one after it once the link has room again. Whoever is let
// through need not wait for that: its next write is then among those of which the first is chosen, so that a share
// with one connection has its weight too. The caller holds the lock.
func (u *Uplink) next() {
	for u.busy = false; len(u.waiting) > 0 && !u.busy; {
		w := slices.MinFunc(u.waiting, func(a, b *write) int { return cmp.Compare(a.tag, b.tag) })
		u.waiting = slices.DeleteFunc(u.waiting, func(other *write) bool { return other == w })
		u.virtual = w.tag
		if earliest := time.Now().Add(-uplinkBurst); u.free.Before(earliest) {
			u.free = earliest
		}
		u.free = u.free.Add(time.Duration(float64(w.bytes) / u.rate * float64(time.Second)))
		close(w.turn)
		if wait := time.Until(u.free); wait > 0 {
			u.busy = true
			time.AfterFunc(wait, func() {
				u.mu.Lock()
				defer u.mu.Unlock()
				u.next()
			})
		}
	}
}
