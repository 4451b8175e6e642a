package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/tensor"
)

// Result is what a gradient function says of its work.
type Result struct {
	// Loss is the mean loss over the samples, for Stats.
	Loss float64
	// Samples is how many samples the gradient is the mean of.
	Samples int
}

// trainer is the state of the one goroutine that steps.
type trainer struct {
	stepping atomic.Bool
	model    int    // the replacements of the model that are taken into account
	owed     bool   // a step was reported and the machine has not said Proceed
	result   Result // of the gradient that was reported, if the machine averages those
	x, grad  tensor.Vector
	waited   time.Duration // for slices, since the last step was added
	speed    speed
	ended    time.Time    // when the last gradient function returned
	stride   smoothed     // length of a step
	last     time.Time    // when the last step was added
	took     smoothed     // seconds from one step to the next
	step     atomic.Int64 // of these, in nanoseconds, for other goroutines
	resumed  time.Time    // when the operator last let it go on
}

const (
	// strideSmoothing and stepSmoothing are the weights of a new sample.
	strideSmoothing = 0.1
	stepSmoothing   = 0.1
)

// ticked notes that a step was added.
func (t *trainer) ticked(now time.Time) {
	if !t.last.IsZero() {
		t.took.add(now.Sub(t.last).Seconds(), stepSmoothing)
		t.step.Store(int64(seconds(t.took.value)))
	}
	t.last = now
}

// stepTime is about the time from one step to the next, 0 before two were taken. Safe
// for concurrent use.
func (t *trainer) stepTime() time.Duration { return time.Duration(t.step.Load()) }

func (t *trainer) prepare(n int) {
	t.x, t.grad = make(tensor.Vector, n), make(tensor.Vector, n)
}

// Step takes one gradient step. It calls gradient with a snapshot x of the
// parameters and a zeroed grad to write the mean gradient into; both are valid
// until gradient returns and must not be kept. The snapshot may mix slices from
// before and after an exchange. No lock is held while the gradient is computed.
// Then it applies the optimizer's step and lets the machine decide whether to
// talk; exchanges go on in the background and Step does not wait for them.
//
// The first call waits for joining: until a member has answered, or for
// JoinPatience if none does, after which the peer trains alone and keeps trying.
// A peer that comes to a flock that has already trained copies the flock's
// parameters first, from several members at once; see State. One that trained alone and
// then finds such a flock, with a model that is behind, copies it too, at its next Step; the
// step under way, if there is one, is left out then and not counted.
//
// It returns ErrRunOver when the flock has done its work, ErrClosed after Close,
// a *RefusedError if the members asked to join will not have this peer,
// ErrNotFinite if the gradient or the step is not finite, the gradient's norm is beyond
// 1e18, or the step is about a million times longer than the model (nothing is applied;
// the caller may go on), or the error of gradient or ctx, wrapped (nothing is applied).
// Calls from two goroutines at once are an error.
//
// With an algorithm that averages gradients (lock-step, or with a server) Step hands the
// gradient over and waits for the update made of it. If ctx ends meanwhile, the gradient
// has been handed over all the same: it counts in the update, as the next call reports,
// which waits for that before it computes another gradient. A gradient as long as the step
// above is left out of the mean, which fails the Step too, and the caller may go on.
func (p *Peer) Step(ctx context.Context, gradient func(x, grad tensor.Vector) (Result, error)) error {
	t := &p.trainer
	if !t.stepping.CompareAndSwap(false, true) {
		return errTwoTrainers
	}
	defer t.stepping.Store(false)
	began := time.Now()
	if err := p.admit(ctx); err != nil {
		return err
	}
	t.waited += p.replica.Snapshot(t.x)
	clear(t.grad)
	p.held(began)
	result, err := gradient(t.x, t.grad)
	t.ended = time.Now()
	if err != nil {
		return fmt.Errorf("step %d: computing the gradient: %w", p.counters.steps.Load()+1, err)
	}
	if !(tensor.SumSquares(t.grad) <= maxSquaredNorm) || math.IsNaN(result.Loss) { // false for NaN
		return fmt.Errorf("step %d: the gradient or the loss: %w: lower the learning rate, or check the data; the step was not applied", p.counters.steps.Load()+1, ErrNotFinite)
	}
	if p.arrival.replaced.count() != t.model {
		return nil
	}
	if p.together != nil {
		return p.contribute(ctx, result)
	}
	rate := p.control.at(p.flock.total(p.counters.steps.Load())).schedule.RateAt(p.progress())
	waited, err := p.optimize(t.grad, t.x, rate, 0, t.model)
	if errors.Is(err, errReplaced) {
		return nil
	}
	if err != nil {
		return err
	}
	p.stepped(t.grad, waited)
	p.counters.learned(result, rate)
	p.control.samples.Add(uint64(max(result.Samples, 0)))
	p.held(t.ended)
	return nil
}

// maxSquaredNorm bounds the squared norm of a gradient: beyond, the squares that an
// optimizer keeps would be infinite as float32.
const maxSquaredNorm = 1e36

var errTwoTrainers = errors.New("Step or Apply was called while another call runs: a peer has one trainer")

// Apply adds delta, a step that the caller's own optimizer made, and counts it
// as one gradient step. delta must have as many values as the layout. It waits
// and fails as Step does, with ErrNotFinite for a delta that would leave a model
// that nobody would take: nothing of it is applied then.
func (p *Peer) Apply(ctx context.Context, delta tensor.Vector) error {
	t := &p.trainer
	if !t.stepping.CompareAndSwap(false, true) {
		return errTwoTrainers
	}
	defer t.stepping.Store(false)
	if p.together != nil {
		return errNoSteps
	}
	if len(delta) != p.replica.Len() {
		return fmt.Errorf("applying a step of %d values to %d parameters", len(delta), p.replica.Len())
	}
	if err := p.admit(ctx); err != nil {
		return err
	}
	waited, err := p.add(delta, p.trainer.model)
	if errors.Is(err, errReplaced) {
		return nil
	}
	if err != nil {
		return err
	}
	p.stepped(delta, waited)
	return nil
}

// stepped counts a step that was added and reports it to the machine.
func (p *Peer) stepped(delta tensor.Vector, waited time.Duration) {
	p.counters.blocked.add(p.trainer.waited + waited)
	p.trainer.waited = 0
	p.counters.steps.Add(1)
	p.trainer.owed = p.notify(notice{event: p.stepDone(delta)})
}

// stepDone is the event of a step, with what the pace asks to know of it.
func (p *Peer) stepDone(delta tensor.Vector) averaging.Event {
	event, pace := averaging.Event{Kind: averaging.StepDone}, p.config.Exchange.Pace
	p.trainer.ticked(time.Now())
	t := &p.trainer
	if pace.BySpeed {
		own := p.counters.steps.Load()
		members, _ := p.flock.members()
		event.Speed = t.speed.of(own, p.flock.total(own), members, time.Now())
	}
	if pace.Drift == 0 && !pace.Consensus {
		return event
	}
	t.stride.add(tensor.Norm2(delta), strideSmoothing)
	event.Stride, event.Progress = t.stride.value, p.progress()
	if pace.Drift > 0 && t.stride.value > 0 {
		event.Moved = p.replica.Moved() / t.stride.value
	}
	return event
}

// admit waits until the trainer may take a step, or says why it may not.
func (p *Peer) admit(ctx context.Context) error {
	t := &p.trainer
	if !p.arrival.open() {
		if err := p.arrive(ctx); err != nil {
			return err
		}
		t.resumed = time.Now()
	}
	p.renew()
	select {
	case <-p.closing:
		return ErrClosed
	case <-p.arrival.barred:
		return p.arrival.fault
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before a step: %w", err)
	}
	if err := p.control.pass(ctx); err != nil {
		return err
	}
	if p.counters.over.Load() {
		return p.control.runOver()
	}
	if p.finished() {
		if p.conclude() {
			p.notify(notice{event: averaging.Event{Kind: averaging.RunOver}})
		}
		return p.control.runOver()
	}
	if !t.owed {
		return nil
	}
	return p.await(ctx)
}

// progress is the share of the flock's work that is done, 0 if there is no end.
func (p *Peer) progress() float64 {
	target := p.target()
	if target == 0 {
		return 0
	}
	return min(float64(p.flock.total(p.counters.steps.Load()))/float64(target), 1)
}

// held notes for how long the trainer was kept from its work since a moment.
func (p *Peer) held(since time.Time) {
	if since.Before(p.trainer.resumed) {
		since = p.trainer.resumed // a pause is none of the peer's doing
	}
	if p.counters.steps.Load() > p.counters.resumed {
		p.counters.hold(time.Since(since))
	}
}
