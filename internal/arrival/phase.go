package arrival

import (
	"sync"
	"sync/atomic"
)

// Phase is the progress of a peer's arrival in its run.
type Phase uint32

const (
	Seeking Phase = iota // no member has answered yet
	Copying              // the flock's model is on its way
	Here                 // the trainer may train and others may exchange
)

// phases is the phase of an arrival, with a gate for goroutines that wait for Here.
type phases struct {
	mu      sync.Mutex // held while the two below change
	present atomic.Uint32
	gate    chan struct{} // closed while the phase is Here
	alone   atomic.Bool   // training has begun because nobody answered
}

// Phase is the present phase.
func (p *phases) Phase() Phase { return Phase(p.present.Load()) }

// Open tells whether the trainer may train and others may exchange with this peer.
func (p *phases) Open() bool { return p.Phase() == Here }

// advance goes from one phase to the next, unless another goroutine has changed the phase.
func (p *phases) advance(from, to Phase) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Phase() != from {
		return false
	}
	p.present.Store(uint32(to))
	switch {
	case to == Here:
		close(p.gate)
	case from == Here:
		p.gate = make(chan struct{})
	}
	return true
}

// entrance is closed once the phase is Here.
func (p *phases) entrance() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate
}

// hold keeps the trainer waiting for the flock's model: before its first step, or between
// two steps if it began because nobody answered. It returns the phase to go back to.
func (p *phases) hold() (from Phase, held bool) {
	if p.advance(Seeking, Copying) {
		return Seeking, true
	}
	return Here, p.alone.Load() && p.advance(Here, Copying)
}
