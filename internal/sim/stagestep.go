package sim

import (
	"github.com/seed-97356399/murmuration/internal/stages"
)

// begin begins a step: micro-batches are computed at a snapshot until the schedule wants a step.
func (s *staged) begin() {
	p := s.peer
	t := &p.trainer
	p.world.config.Pipeline.Work.Began(p.index)
	t.stepping, t.computed = true, true // the world computes no gradient for it
	t.x, _ = t.Begin()
	clear(s.grad)
	s.loss, s.samples = 0, 0
	if s.stepped {
		s.stepped = false
		s.source.Round(s.next())
		s.act(s.holder.Stepped(p.now()))
	}
	if due := s.due; due != nil {
		s.due = nil
		s.compute(*due)
	}
	s.feed()
	s.roundOver()
}

// compute computes a micro-batch, which takes as long as its passes do.
func (s *staged) compute(a stages.Action) {
	p := s.peer
	if !p.trainer.stepping {
		s.due = &a
		return
	}
	work, h := p.world.config.Pipeline.Work, s.held[a.At]
	took := minStep
	if h.flow == nil {
		took += work.Takes(p.index, p.stage, false)
	}
	if a.Kind == stages.ComputeBack {
		took += work.Takes(p.index, p.stage, true)
	}
	s.computing, s.began = true, p.now()
	p.world.queue.After(took, func() {
		if s.idle() {
			return
		}
		s.computing = false
		s.busy += took
		s.act(s.holder.Computed(p.now(), a.At, !s.pass(a, h)))
		s.watch()
	})
}

// pass computes a pass of a micro-batch. It is false if its values are of no use.
func (s *staged) pass(a stages.Action, h *held) (useful bool) {
	work, last := s.peer.world.config.Pipeline.Work, s.peer.stage == s.peer.world.config.stages()-1
	if h.flow == nil {
		if n := len(s.flows); n > 0 {
			h.flow, s.flows = s.flows[n-1], s.flows[:n-1]
		} else {
			h.flow = work.Flow(s.peer.stage)
		}
		h.params = s.peer.trainer.x
		out, useful := h.flow.Forward(h.params, h.in.Values, h.id.Number^h.id.Source.Fingerprint())
		if !useful {
			return false
		}
		if last {
			if h.loss, h.errors, useful = h.flow.Loss(out, h.in.Targets); !useful {
				return false
			}
		} else {
			h.out = Parcel{Targets: h.in.Targets, Examples: h.in.Examples}
			h.out.Values, h.out.Bytes = work.Code(out)
			h.out.Bytes += 4 * len(h.out.Targets)
		}
	}
	if a.Kind == stages.ComputeForward {
		return true
	}
	below, useful := h.flow.Backward(h.params, s.grad, h.errors)
	if !useful {
		return false
	}
	if h.back = (Parcel{}); s.peer.stage > 0 {
		h.back.Values, h.back.Bytes = work.Code(below)
	}
	s.loss += h.loss * float64(h.in.Examples)
	s.samples += h.in.Examples
	return true
}

// step makes a step of the mean gradient of the micro-batches since the last.
func (s *staged) step() {
	t := &s.peer.trainer
	if s.idle() || !t.stepping {
		return
	}
	n := max(s.samples, 1) // in a round others may have had all
	for i := range s.grad {
		s.grad[i] /= float32(n)
	}
	t.loss, t.samples, t.fault = s.loss/float64(n), s.samples, nil
	s.leave()
	s.peer.world.config.Pipeline.Work.Stepped(s.peer.index, t.loss)
	s.stepped = true
	s.steps++
	t.Lend(s.grad)
	t.took()
	s.give()
}

// leave copies the parameters of the step for the micro-batches that go on with them, since the trainer uses their memory
// again. When the schedule wants a step, nothing is on its way of those before.
func (s *staged) leave() {
	x := s.peer.trainer.x
	copied := false
	for _, h := range s.held {
		if h.params == nil || &h.params[0] != &x[0] {
			continue
		}
		if !copied {
			s.older = append(s.older[:0], x...)
			copied = true
		}
		h.params = s.older
	}
}
