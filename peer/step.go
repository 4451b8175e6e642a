package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Result is what a gradient function says of its work.
type Result struct {
	// Loss is the mean loss over the samples, for Stats.
	Loss float64
	// Samples is how many samples the gradient is the mean of.
	Samples int
}

// training is a peer's trainer in real time: it waits until a step may begin, and tells
// the loop of it.
type training struct {
	*trainer.Trainer
	peer     *Peer
	stepping atomic.Bool
	proceed  chan struct{}         // one token: the next step may begin
	halts    chan averaging.Reason // one: why it may not
	averages bool                  // the machine averages gradients, and asks for the updates
	pools    bool                  // the machine makes one model of all in the end
	updates  *updates              // nil unless it does
	batch    atomic.Int64          // samples that the machine wants in the next gradient, 0 if any number
	between  atomic.Int64          // nanoseconds from one step to the next, about

	owed    bool      // a step was reported, and the machine has not said Proceed
	ended   time.Time // when the last gradient function returned
	resumed time.Time // when the operator last let it go on
}

// begin makes the trainer for a machine.
func (t *training) begin(p *Peer, machine collective.Traits) {
	t.peer, t.proceed, t.halts = p, make(chan struct{}, 1), make(chan averaging.Reason, 1)
	t.Trainer = trainer.New(trainer.Config{
		Replica: p.replica, Optimizer: p.config.Optimizer, Traits: machine, Pace: p.config.Exchange.Pace, Run: t,
	})
	t.averages, t.pools = machine.Gradients, machine.Pools
	if t.averages {
		t.updates = newUpdates(p.replica.Len())
	}
}

var (
	errTwoTrainers = errors.New("Step or Apply was called while another call runs: a peer has one trainer")
	errNoSteps     = errors.New("applying a step: the algorithm averages gradients and makes the steps itself: call Step, and give the optimizer as Config.Optimizer")
)

// alone makes a step, unless another is being made.
func (t *training) alone(step func() error) error {
	if !t.stepping.CompareAndSwap(false, true) {
		return errTwoTrainers
	}
	defer t.stepping.Store(false)
	switch err := step(); {
	case errors.Is(err, trainer.ErrReplaced):
		return nil
	case errors.Is(err, trainer.ErrOver):
		return t.peer.work.runOver()
	default:
		return err
	}
}

func (t *training) step(ctx context.Context, gradient func(x, grad tensor.Vector) (Result, error)) error {
	p, began := t.peer, time.Now()
	if err := t.admit(ctx); err != nil {
		return err
	}
	x, grad := t.Begin()
	t.held(began)
	result, err := gradient(x, grad)
	t.ended = time.Now()
	if err != nil {
		return fmt.Errorf("step %d: computing the gradient: %w", p.flock.Steps()+1, err)
	}
	event, err := t.Gradient(p.now(), result.Loss, result.Samples)
	if err != nil {
		return err
	}
	// Of a checkpoint without steps nobody knows whether its parameters are the run's first.
	event.Initial = p.flock.Age() == 0 && p.config.Checkpoint.Incarnation == 0
	t.owed = p.notify(notice{event: event})
	if t.averages {
		return t.await(ctx)
	}
	t.held(t.ended)
	return nil
}

func (t *training) apply(ctx context.Context, delta tensor.Vector) error {
	p := t.peer
	if t.averages {
		return errNoSteps
	}
	if len(delta) != p.replica.Len() {
		return fmt.Errorf("applying a step of %d values to %d parameters", len(delta), p.replica.Len())
	}
	if err := t.admit(ctx); err != nil {
		return err
	}
	event, err := t.Trainer.Apply(p.now(), delta)
	if err != nil {
		return err
	}
	t.owed = p.notify(notice{event: event})
	return nil
}

// admit waits until the trainer may take a step, or says why it may not.
func (t *training) admit(ctx context.Context) error {
	p := t.peer
	if !p.arrival.Open() {
		if err := p.arrival.Wait(ctx); errors.Is(err, seam.ErrClosed) {
			return ErrClosed
		} else if err != nil {
			return err
		}
		t.resumed = time.Now()
	}
	select {
	case <-p.closing:
		return ErrClosed
	case <-p.arrival.Barred():
		return p.arrival.Fault()
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before a step: %w", err)
	}
	if err := t.pass(ctx); err != nil {
		return err
	}
	if p.flock.IsOver() {
		return p.work.runOver()
	}
	if p.work.finished() {
		if p.work.conclude() {
			p.notify(news(averaging.Event{Kind: averaging.RunOver}))
		}
		return p.work.runOver()
	}
	if !t.owed {
		return nil
	}
	return t.await(ctx)
}

// await waits until the machine answers the step that was reported to it.
func (t *training) await(ctx context.Context) error {
	p := t.peer
	select {
	case <-t.proceed: // whatever else has happened: the step is done
		return t.released()
	default:
	}
	select {
	case <-t.proceed:
		return t.released()
	case reason := <-t.halts:
		t.owed = false
		return fmt.Errorf("step %d: %w", p.flock.Steps()+1, &HaltedError{Reason: reason})
	case <-p.flock.Over():
		return p.work.runOver()
	case <-p.closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for leave to go on: %w", ctx.Err())
	}
}

// released takes the machine's leave to go on. Of a gradient that was reported, it is
// what makes it a step, unless it or the update of it was left out.
func (t *training) released() error {
	t.owed = false
	if !t.averages {
		return nil
	}
	select {
	case err := <-t.updates.faults:
		return err
	default:
	}
	t.Proceed(t.peer.now())
	t.held(t.ended)
	return nil
}

// held notes for how long the trainer was kept from its work since a moment.
func (t *training) held(since time.Time) {
	if since.Before(t.resumed) {
		since = t.resumed // a pause is none of the peer's doing
	}
	if p := t.peer; p.flock.Steps() > p.flock.Resumed() {
		p.tally.Held(time.Since(since))
	}
}

// pass waits while the operator holds trainers: that time is none of a step.
func (t *training) pass(ctx context.Context) error {
	for {
		held := t.peer.orders.Held()
		if held == nil {
			return nil
		}
		select {
		case <-held:
			t.Rest()
			t.resumed = time.Now()
		case <-t.peer.closing:
			return ErrClosed
		case <-t.peer.arrival.Barred():
			return t.peer.arrival.Fault()
		case <-ctx.Done():
			return fmt.Errorf("the operator has paused the run: %w", ctx.Err())
		}
	}
}

// stepTime is about the time from one step to the next, 0 before two were taken. Safe
// for concurrent use.
func (t *training) stepTime() time.Duration { return time.Duration(t.between.Load()) }

// Made implements trainer.Run.
func (t *training) Made(s trainer.Step) {
	p := t.peer
	p.tally.Stepped(s.Waited)
	p.flock.Stepped()
	t.between.Store(int64(s.Between))
	if !math.IsNaN(s.Loss) {
		p.tally.Learned(s.Loss, s.Rate, s.Samples)
	}
}

// Steps implements trainer.Run.
func (t *training) Steps() (own, all uint64, peers int) {
	f := t.peer.flock
	peers, _ = f.Members()
	return f.Steps(), f.Total(), peers
}

// Progress implements trainer.Run.
func (t *training) Progress() float64 { return t.peer.work.progress() }

// Rate implements trainer.Run. At a progress that a machine has told all peers it is that
// of the schedule that holds there, wherever each of them takes the flock to be.
func (t *training) Rate(progress float64) float64 {
	p := t.peer
	if progress <= 0 {
		return p.orders.At(p.flock.Total()).Schedule.RateAt(p.work.progress())
	}
	return p.orders.Reached(progress, p.flock.Total(), p.flock.Participants()).Schedule.RateAt(progress)
}
