package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// A machine that averages gradients (averaging.GradientMachine) has its trainer put a
// gradient into the replica and wait. The steps themselves are made here, by the
// peer's optimizer, whenever the machine asks for an update: of the mean of all peers'
// gradients, or at a server of what workers have sent it.

// together is what it takes to train with such a machine.
type together struct {
	room    chan struct{} // holds a token while no update is under way
	grad, x tensor.Vector // of the update; whoever holds the token owns them
	faults  chan error    // why the last update, or gradient, was left out; holds one
	warned  bool          // that the optimizer cannot forget; whoever holds the token owns it
}

// newTogether is nil unless the machine averages gradients.
func newTogether(machine averaging.Machine, r *replica.Replica) *together {
	if _, ok := machine.(averaging.GradientMachine); !ok {
		return nil
	}
	r.UseGradients()
	t := &together{
		room: make(chan struct{}, 1), faults: make(chan error, 1),
		grad: make(tensor.Vector, r.Len()), x: make(tensor.Vector, r.Len()),
	}
	t.room <- struct{}{}
	return t
}

var errNoSteps = errors.New("applying a step: the algorithm averages gradients and makes the steps itself: call Step, and give the optimizer as Config.Optimizer")

// contribute hands the trainer's gradient to the machine and waits until that has made
// use of it.
func (p *Peer) contribute(ctx context.Context, result Result) error {
	t := &p.trainer
	result.Samples = max(result.Samples, 1)
	t.result = result
	if err := p.replica.PutGradient(t.grad, float64(result.Samples)); err != nil {
		return fmt.Errorf("step %d: %w", p.counters.steps.Load()+1, err)
	}
	t.owed = p.notify(notice{event: averaging.Event{
		Kind: averaging.GradientDone, Samples: result.Samples, Progress: p.progress(), Initial: p.initial(),
	}})
	return p.await(ctx)
}

// initial tells whether the parameters are still those with which every peer of the run
// begins. Of a checkpoint without steps nobody knows that.
func (p *Peer) initial() bool {
	return p.age() == 0 && p.config.Network.State.Checkpoint.Incarnation == 0
}

// await waits until the machine answers the step that was reported to it.
func (p *Peer) await(ctx context.Context) error {
	t := &p.trainer
	select {
	case <-p.proceed: // whatever else has happened: the step is done
		return p.released()
	default:
	}
	select {
	case <-p.proceed:
		return p.released()
	case reason := <-p.halts:
		t.owed = false
		return fmt.Errorf("step %d: %w", p.counters.steps.Load()+1, &HaltedError{Reason: reason})
	case <-p.over:
		return p.control.runOver()
	case <-p.closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for leave to go on: %w", ctx.Err())
	}
}

// released takes the machine's leave to go on. Of a gradient that was reported, it is
// what makes it a step.
func (p *Peer) released() error {
	t := &p.trainer
	t.owed = false
	if p.together == nil {
		return nil
	}
	select {
	case err := <-p.together.faults:
		return err
	default:
	}
	rate := p.rate(p.progress())
	p.counters.blocked.add(t.waited)
	t.waited = 0
	p.counters.steps.Add(1)
	t.ticked(time.Now())
	p.counters.learned(t.result, rate)
	p.control.samples.Add(uint64(t.result.Samples))
	p.held(t.ended)
	return nil
}

// rate is the learning rate at a progress of the run, by the schedule that holds where this
// peer takes the flock to be.
func (p *Peer) rate(progress float64) float64 {
	return p.control.at(p.flock.total(p.counters.steps.Load())).schedule.RateAt(progress)
}

// rateOfAll is the learning rate of an update that others make too, at the progress that
// the machine has told them all: by the schedule that holds there, wherever each of them
// takes the flock to be. Without progress, as where the run has no end, it is the peer's
// own.
func (p *Peer) rateOfAll(progress float64) float64 {
	if progress <= 0 {
		return p.rate(p.progress())
	}
	own := p.flock.total(p.counters.steps.Load())
	return p.control.reached(progress, own, uint64(p.flock.participants.Load())).schedule.RateAt(progress)
}

// update has the optimizer make a step of what has been summed up. What is in the sum
// is taken at once, so that whatever the machine does to the sum next comes after; the
// loop waits for an update before, if one is under way.
func (l *loop) update(action averaging.Action) {
	p := l.peer
	t := p.together
	<-t.room
	p.replica.Drain(t.grad, action.Weight)
	begun := p.transfers.spawn(func() {
		if action.Forget {
			p.forgetPast()
		}
		p.makeStep(p.rateOfAll(action.Progress), action.Share)
		t.room <- struct{}{}
		p.notify(notice{event: averaging.Event{Kind: averaging.Updated}})
	})
	if !begun { // the peer is closing
		t.room <- struct{}{}
	}
}

// forgetPast has the optimizer forget, as those of all peers do that make the same update.
// The caller holds the token.
func (p *Peer) forgetPast() {
	if _, able := p.config.Optimizer.(resetter); !able && !p.together.warned {
		p.together.warned = true
		p.log.Warn("a peer has come, and the optimizer has no method Reset to forget past gradients with: if it remembers any, the models of the peers stay apart. Give it one (see peer.Optimizer)",
			zap.String("optimizer", fmt.Sprintf("%T", p.config.Optimizer)))
	}
	p.optimizing.Lock()
	defer p.optimizing.Unlock()
	p.forget()
}

// makeStep makes the step of the mean gradient that was taken, or a share of it.
func (p *Peer) makeStep(rate, share float64) {
	t := p.together
	model := p.arrival.replaced.count()
	p.replica.Snapshot(t.x)
	if _, err := p.optimize(t.grad, t.x, rate, float32(share), model); err != nil {
		err = fmt.Errorf("the update of the mean gradient: %w", err)
		p.log.Warn("leaving out an update", zap.Error(err))
		t.fault(err)
	}
}

// fault is what the trainer's step is to fail with.
func (t *together) fault(err error) {
	select {
	case t.faults <- err:
	default: // the trainer has not heard of the last one
	}
}
