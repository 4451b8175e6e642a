package peer

import (
	"errors"
	"sync"

	"github.com/seed-97356399/murmuration/tensor"
)

// errReplaced: a step was made for a model that another has taken the place of.
var errReplaced = errors.New("the model was replaced by the flock's")

// replaced keeps a step that was made for one model out of another: a peer that trained
// alone gets the flock's model while its trainer computes. The zero value is ready.
type replaced struct {
	mu    sync.Mutex
	times int
}

// count is how often the model was replaced.
func (r *replaced) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times
}

// by puts another model in place of the one in training.
func (r *replaced) by(restore func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times++
	return restore()
}

// unless does something to the model, unless it was replaced since count said so.
func (r *replaced) unless(count int, do func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times != count {
		return false
	}
	do()
	return true
}

// renew has the trainer forget what it knows of a model that was replaced.
func (p *Peer) renew() {
	t := &p.trainer
	if n := p.arrival.replaced.count(); n != t.model {
		t.model = n
		p.optimizing.Lock()
		defer p.optimizing.Unlock()
		p.forget()
	}
}

// restore makes values the model with which this peer begins, or goes on if it is late.
func (p *Peer) restore(values tensor.Vector, late bool) error {
	if !late {
		return p.replica.RestoreShared(values)
	}
	return p.arrival.replaced.by(func() error { return p.replica.RestoreShared(values) })
}
