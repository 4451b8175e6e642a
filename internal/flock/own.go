package flock

import "sync/atomic"

// Own is what this peer has done.
type Own struct {
	steps   atomic.Uint64
	resumed atomic.Uint64 // of the steps, those of earlier lives
	head    atomic.Uint64 // steps behind this peer's model, taken by others
	idle    atomic.Bool   // it does not train
}

// Steps is the number of steps of this peer, those of earlier lives included.
func (o *Own) Steps() uint64 { return o.steps.Load() }

// Stepped counts a step of this peer, and returns Steps.
func (o *Own) Stepped() uint64 { return o.steps.Add(1) }

// Resumed is how many of the steps of this peer are those of earlier lives.
func (o *Own) Resumed() uint64 { return o.resumed.Load() }

// Head is the number of steps behind this peer's model that others have taken.
func (o *Own) Head() uint64 { return o.head.Load() }

// Age is the number of steps behind this peer's model.
func (o *Own) Age() uint64 { return o.head.Load() + o.steps.Load() }

// SetAge says how many steps lie behind the model: no fewer than this peer's own.
func (o *Own) SetAge(steps uint64) {
	own := o.steps.Load()
	o.head.Store(max(steps, own) - own)
}

// SetIdle says whether this peer does not train.
func (o *Own) SetIdle(idle bool) { o.idle.Store(idle) }

// Idle tells whether this peer does not train.
func (o *Own) Idle() bool { return o.idle.Load() }
