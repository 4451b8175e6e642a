package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// steps makes the steps of this member, of the micro-batches of its stages: of one, or of both ends. The goroutine that calls Step
// has it.
type steps struct {
	*run
	stages []*stage
	rounds *rounds
	made   bool // the last step was, and the schedules that wait for it do not know
}

// gradient is the mean gradient of the micro-batches of a step, at parameters that do not change meanwhile.
func (p *steps) gradient(ctx context.Context, x, grad tensor.Vector, over <-chan struct{}) (peer.Result, error) {
	p.begin(x, grad)
	defer p.leave()
	if p.rounds != nil && !p.rounds.begin() {
		p.made = true
		return peer.Result{Empty: true}, nil // for the mean of its stage
	}
	for {
		if r, due := p.due(); due {
			return r, nil
		}
		if ctx.Err() != nil {
			return peer.Result{}, fmt.Errorf("waiting for micro-batches: %w", context.Cause(ctx))
		}
		select {
		case j := <-p.jobs:
			if d := j.stage.desk; j.Kind == stages.Step {
				p.mu.Lock() // end reads it with the lock held
				d.due = true
				p.mu.Unlock()
			} else {
				useless := d.compute(j)
				j.stage.tell(func() []stages.Action { return j.stage.machine.Computed(p.now(), j.At, useless) })
			}
		case <-ctx.Done():
		case <-over:
			return peer.Result{}, peer.ErrRunOver
		case <-p.life.Done():
			return peer.Result{}, context.Cause(p.life)
		}
	}
}

// begin begins a step, once the schedules know of the last.
func (p *steps) begin(x, grad tensor.Vector) {
	for _, s := range p.stages {
		n := s.model.Layout().Len()
		s.desk.params, s.desk.grad, s.desk.worst = x[:n], grad[:n], worst{}
		x, grad = x[n:], grad[n:]
	}
	if p.made && p.rounds == nil {
		p.stepped()
	}
	p.made = false
}

// due is what the step is made of, if one is due.
func (p *steps) due() (r peer.Result, due bool) {
	if !p.stages[0].desk.due || p.rounds != nil && slices.ContainsFunc(p.stages, func(s *stage) bool { return !s.desk.due }) {
		return r, false
	}
	if p.rounds != nil && p.rounds.follow() {
		return r, false
	}
	if p.rounds != nil && p.stages[0].desk.Samples == 0 { // others of the stage have had all of the round, or the step was not made
		p.made = true
		return peer.Result{Empty: true}, true
	}
	if p.stages[0].desk.Samples == 0 { // it was due when the last one was broken off, and its gradients are gone
		p.stepped()
		return r, false
	}
	for _, s := range p.stages {
		if of := s.desk.mean(); s.index == p.stages[0].index {
			r = of
		}
	}
	p.made = true
	return r, true
}

// stepped tells the schedules that wait for a step that it is made.
func (p *steps) stepped() {
	for _, s := range p.stages {
		if s.desk.due {
			s.desk.due = false
			s.tell(func() []stages.Action { return s.machine.Stepped(p.now()) })
		}
	}
}

// leave ends a step. If it was not made, its gradients are gone.
func (p *steps) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stages {
		if s.desk.leave(s.held); !p.made {
			s.machine.Discard()
		}
	}
}
