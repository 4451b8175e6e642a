package sim

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/stages"
)

// desk computes a peer's micro-batches, and makes steps of their gradients.
type desk struct {
	*staged
	flows []Flow         // that nobody uses
	grad  []float32      // of this step
	older []float32      // parameters of micro-batches that were computed forward before the last step
	due   *stages.Action // to be computed once a step has begun

	loss    float64 // sums over the samples of this step
	samples int
	stepped bool // the last step was made, and the schedule does not know

	computing bool
	began     time.Duration // when the pass that it computes did
	busy      time.Duration // in all passes
}

// begin begins a step: micro-batches are computed at a snapshot until the schedule wants a step.
func (d *desk) begin() {
	p := d.peer
	t := &p.trainer
	p.world.config.Pipeline.Work.Began(p.index)
	t.stepping, t.computed = true, true // the world computes no gradient for it
	t.x, _ = t.Begin()
	clear(d.grad)
	d.loss, d.samples = 0, 0
	switch {
	case d.rounds.machine != nil:
		if !d.rounds.begin() {
			p.world.queue.After(minStep, d.step)
			return
		}
	case d.stepped:
		d.stepped = false
		d.act(d.holder.Stepped(p.now()))
	}
	if due := d.due; due != nil {
		d.due = nil
		d.compute(*due)
	}
	d.feed()
}

// compute computes a micro-batch, which takes as long as its passes do.
func (d *desk) compute(a stages.Action) {
	p := d.peer
	if !p.trainer.stepping {
		d.due = &a
		return
	}
	work, h := p.world.config.Pipeline.Work, d.held[a.At]
	took := minStep
	if h.flow == nil {
		took += work.Takes(p.index, p.stage, false)
	}
	if a.Kind == stages.ComputeBack {
		took += work.Takes(p.index, p.stage, true)
	}
	d.computing, d.began = true, p.now()
	p.world.queue.After(took, func() {
		if d.idle() {
			return
		}
		d.computing = false
		d.busy += took
		d.act(d.holder.Computed(p.now(), a.At, !d.pass(a, h)))
		d.watch()
	})
}

// pass computes a pass of a micro-batch. It is false if its values are of no use.
func (d *desk) pass(a stages.Action, h *held) (useful bool) {
	work, last := d.peer.world.config.Pipeline.Work, d.peer.stage == d.peer.world.stages()-1
	if h.flow == nil {
		if n := len(d.flows); n > 0 {
			h.flow, d.flows = d.flows[n-1], d.flows[:n-1]
		} else {
			h.flow = work.Flow(d.peer.stage)
		}
		h.params = d.peer.trainer.x
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
	below, useful := h.flow.Backward(h.params, d.grad, h.errors)
	if !useful {
		return false
	}
	if h.back = (Parcel{}); d.peer.stage > 0 {
		h.back.Values, h.back.Bytes = work.Code(below)
	}
	d.loss += h.loss * float64(h.in.Examples)
	d.samples += h.in.Examples
	return true
}

// step makes a step of the mean gradient of the micro-batches since the last.
func (d *desk) step() {
	t := &d.peer.trainer
	if d.idle() || !t.stepping {
		return
	}
	n := max(d.samples, 1)
	for i := range d.grad {
		d.grad[i] /= float32(n)
	}
	t.loss, t.samples, t.fault = d.loss/float64(n), d.samples, nil
	d.leave()
	d.peer.world.config.Pipeline.Work.Stepped(d.peer.index, t.loss)
	d.stepped = true
	t.Lend(d.grad)
	t.took()
	d.keeps.give()
}

// leave copies the parameters of the step for the micro-batches that go on with them, since the trainer uses their memory
// again. When the schedule wants a step, nothing is on its way of those before.
func (d *desk) leave() {
	x := d.peer.trainer.x
	copied := false
	for _, h := range d.held {
		if h.params == nil || &h.params[0] != &x[0] {
			continue
		}
		if !copied {
			d.older = append(d.older[:0], x...)
			copied = true
		}
		h.params = d.older
	}
}
