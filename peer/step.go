package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Made is what a caller's own optimizer has done since the last Trade.
type Made struct {
	// Steps is the number of steps, 0 to MaxTraded; 0 adds the difference, and counts no step.
	Steps int
	// Samples is the number of samples in these steps, Loss the mean loss; 0 and 0 if not known.
	Samples int
	Loss    float64
}

// MaxTraded bounds the steps of one Trade.
const MaxTraded = 1 << 16

// training is a peer's trainer in real time: it waits until a step may begin, and reports
// the step to the loop.
type training struct {
	*trainer.Trainer
	arrival  *arrival.Joiner
	work     *work
	counters *counters.Counters
	life     *tasks.Life
	loop     conversations.Loop // receives steps
	values   int                // of the model
	fresh    bool               // the parameters are the run's initial ones, as far as is known

	stepping atomic.Bool
	proceed  chan struct{}         // one token: the next step may begin
	halts    chan averaging.Reason // one: why the next step may not begin
	traits   collective.Traits     // of the machine
	updates  *updates              // of a machine that averages gradients, else nil
	batch    atomic.Int64          // samples that the machine wants in the next gradient, 0 if any number
	between  atomic.Int64          // nanoseconds from one step to the next, about

	owed bool // a step was reported, and the machine has not said Proceed
	computation
	resumed time.Time // when a pause by the operator last ended
}

// begin gets ready for a machine with these traits.
func (t *training) begin(c trainer.Config, log *zap.Logger) {
	t.proceed, t.halts = make(chan struct{}, 1), make(chan averaging.Reason, 1)
	t.values, t.traits = c.Replica.Len(), c.Traits
	c.Run = t
	t.Trainer = trainer.New(c)
	if c.Traits.Gradients {
		t.updates = newUpdates(&updates{trainer: t.Trainer, replica: c.Replica, optimizer: c.Optimizer, loop: t.loop, life: t.life, log: log})
	}
}

var (
	errTwoTrainers = errors.New("Step, Apply or Trade was called while another call runs: a peer has one trainer")
	errByRounds    = errors.New("trading: the algorithm commits steps at the end of a round, and has no later parameters to give back before: call Step, or Apply")
	errNoSteps     = errors.New("applying a step: the algorithm averages gradients and makes the steps itself: call Step, and give the optimizer as Config.Optimizer")
)

// alone makes a step; it fails while another is being made.
func (t *training) alone(step func() error) error {
	if !t.stepping.CompareAndSwap(false, true) {
		return errTwoTrainers
	}
	defer t.stepping.Store(false)
	switch err := step(); {
	case errors.Is(err, trainer.ErrReplaced):
		return nil
	case errors.Is(err, trainer.ErrOver):
		return t.work.runOver()
	case errors.Is(err, trainer.ErrClosed), errors.Is(err, transport.ErrClosed):
		return ErrClosed
	default:
		return err
	}
}

// serve waits until the run is over, for a peer that makes no steps.
func (t *training) serve(ctx context.Context) error {
	if err := t.arrival.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-t.work.flock.Over():
		return t.work.runOver()
	case reason := <-t.halts:
		return fmt.Errorf("serving parameters: %w", &HaltedError{Reason: reason})
	case <-t.life.Closing:
		return ErrClosed
	case <-t.arrival.Barred():
		return t.arrival.Fault()
	case <-ctx.Done():
		return fmt.Errorf("serving parameters: %w", ctx.Err())
	}
}

func (t *training) step(ctx context.Context, gradient func(x, grad tensor.Vector) (Result, error)) error {
	began := time.Now()
	if err := t.admit(ctx); err != nil {
		return err
	}
	x, grad := t.Begin()
	t.held(began)
	event, err := t.compute(t, x, grad, gradient)
	if err != nil {
		t.lost(t)
		return err
	}
	event.Initial = t.initial()
	t.owed = t.loop.Event(event)
	if t.updates != nil {
		return t.await(ctx)
	}
	t.held(t.ended)
	return nil
}

// trade adds x − base, or x if there is no base, as steps of the caller's own optimizer.
func (t *training) trade(ctx context.Context, x, base tensor.Vector, made Made) error {
	switch {
	case t.updates != nil:
		return errNoSteps
	case t.traits.Commits && base != nil:
		return errByRounds
	case len(x) != t.values:
		return fmt.Errorf("applying a step of %d values to %d parameters", len(x), t.values)
	case base != nil && len(base) != t.values:
		return fmt.Errorf("trading with a base of %d values for %d parameters: give the vector that the last Trade wrote", len(base), t.values)
	case made.Steps < 0 || made.Steps > MaxTraded:
		return fmt.Errorf("trading %d steps at once: want 0 to %d", made.Steps, MaxTraded)
	}
	if err := t.admit(ctx); err != nil {
		return err
	}
	if made.Samples == 0 && made.Loss == 0 {
		made.Loss = math.NaN() // not known
	}
	event, err := t.Trade(t.life.Now(), x, base, trainer.Made(made))
	if err != nil {
		return err
	}
	t.tell(ctx, event, made.Steps)
	return nil
}

// tell reports added steps to the machine, one after the other. If not all can be reported,
// the next step fails with the reason.
func (t *training) tell(ctx context.Context, event collective.Event, steps int) {
	for n := range steps {
		if n > 0 && t.owed {
			err := t.await(ctx)
			if halted, ok := errors.AsType[*HaltedError](err); ok {
				t.owed = true
				t.halt(halted.Reason) // for the next step
			}
			if err != nil {
				return
			}
		}
		t.owed = t.loop.Event(event)
	}
}

// admit waits until the trainer may take a step, or says why it may not.
func (t *training) admit(ctx context.Context) error {
	if !t.arrival.Open() {
		if err := t.arrival.Wait(ctx); err != nil {
			return err
		}
		t.resumed = time.Now()
	}
	select {
	case <-t.life.Closing:
		return ErrClosed
	case <-t.arrival.Barred():
		return t.arrival.Fault()
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before a step: %w", err)
	}
	for waited := true; waited; {
		if err := t.pass(ctx); err != nil {
			return err
		}
		if t.work.flock.IsOver() {
			return t.work.runOver()
		}
		if t.work.finished() {
			if t.conclude() {
				t.loop.Event(collective.Event{Event: averaging.Event{Kind: averaging.RunOver}})
			}
			return t.work.runOver()
		}
		var err error
		if waited, err = t.turn(ctx); err != nil {
			return err
		}
	}
	if !t.owed {
		return nil
	}
	return t.await(ctx)
}

// turn waits, near the end of the run, until it is this peer's turn to take a step, or its
// orders change. This wait does not count in the step time.
func (t *training) turn(ctx context.Context) (waited bool, err error) {
	if t.work.may(time.Now()) {
		return false, nil
	}
	t.work.flock.Wait(true)
	t.loop.Corrected() // so that this peer's progress is announced
	const look = 10 * time.Millisecond
	ticker, most := time.NewTicker(look), time.After(flock.Beginning)
	defer func() {
		ticker.Stop()
		if !t.work.flock.IsOver() {
			t.work.flock.Wait(false)
		}
		t.Rest()
		t.resumed = time.Now()
	}()
	for {
		select {
		case <-ticker.C:
			if t.work.may(time.Now()) || t.work.finished() || t.work.orders.Held() != nil {
				return true, nil
			}
		case <-most:
			return false, nil
		case <-t.work.flock.Over():
			return true, nil
		case <-t.life.Closing:
			return false, ErrClosed
		case <-t.arrival.Barred():
			return false, t.arrival.Fault()
		case <-ctx.Done():
			return false, fmt.Errorf("waiting to hear how far the others are: %w", ctx.Err())
		}
	}
}

// await waits until the machine answers the step that was reported to it.
func (t *training) await(ctx context.Context) error {
	select {
	case <-t.proceed: // takes precedence: the step is done
		return t.released()
	default:
	}
	select {
	case <-t.proceed:
		return t.released()
	case reason := <-t.halts:
		t.owed = false
		return fmt.Errorf("step %d: %w", t.work.flock.Steps()+1, &HaltedError{Reason: reason})
	case <-t.work.flock.Over():
		return t.work.runOver()
	case <-t.life.Closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for leave to go on: %w", ctx.Err())
	}
}

// released handles the machine's Proceed. A reported gradient then counts as a step, unless
// the gradient or its update was left out.
func (t *training) released() error {
	t.owed = false
	if t.updates == nil {
		return nil
	}
	select {
	case err := <-t.updates.faults:
		return err
	default:
	}
	t.Proceed(t.life.Now())
	t.held(t.ended)
	return nil
}

// held records how long the trainer has been kept waiting since a moment.
func (t *training) held(since time.Time) {
	if since.Before(t.resumed) {
		since = t.resumed // a pause by the operator does not count
	}
	if t.work.flock.Steps() > t.work.flock.Resumed() {
		t.counters.Held(time.Since(since))
	}
}

// pass waits while the operator has paused the run. This wait does not count in the step time.
func (t *training) pass(ctx context.Context) error {
	for {
		held := t.work.orders.Held()
		if held == nil {
			return nil
		}
		select {
		case <-held:
			t.Rest()
			t.resumed = time.Now()
		case <-t.life.Closing:
			return ErrClosed
		case <-t.arrival.Barred():
			return t.arrival.Fault()
		case <-ctx.Done():
			return fmt.Errorf("the operator has paused the run: %w", ctx.Err())
		}
	}
}

// initial tells whether the parameters are those with which the run begins, as far as is known.
func (t *training) initial() bool { return t.fresh && t.work.flock.Age() == 0 }

// goOn lets the next step begin, at parameters of a version, with a batch of so many samples if not 0.
func (t *training) goOn(batch int, version uint64) {
	t.batch.Store(int64(batch))
	if t.updates != nil {
		t.updates.version.Store(version)
	}
	select {
	case t.proceed <- struct{}{}:
	default: // the machine has said Proceed twice for one step
	}
}

// halt makes the next step fail.
func (t *training) halt(why averaging.Reason) {
	select {
	case t.halts <- why:
	default: // the last reason has not been read yet
	}
}

// conclude ends the run after the last step. It returns true to its first caller, which must tell the machine.
func (t *training) conclude() bool {
	t.Finish()
	return t.work.conclude()
}

// StepTime implements conversations.Trainer: 0 before two steps were taken. Safe for concurrent use.
func (t *training) StepTime() time.Duration { return time.Duration(t.between.Load()) }

// Unfit implements conversations.Trainer: a gradient cannot be used.
func (t *training) Unfit(err error) {
	t.updates.fault(fmt.Errorf("the gradient: %w: it was left out; lower the learning rate, or look at the data", err))
}

// Made implements trainer.Run.
func (t *training) Made(s trainer.Step) {
	t.counters.Stepped(s.Waited)
	t.work.flock.Stepped()
	t.between.Store(int64(s.Between))
	if !math.IsNaN(s.Loss) {
		t.counters.Learned(s.Loss, s.Rate, s.Samples)
	}
}

// Steps implements trainer.Run.
func (t *training) Steps() (own, all uint64, peers int) {
	f := t.work.flock
	peers, _ = f.Members()
	return f.Steps(), f.Total(), peers
}

// Exchanges implements trainer.Run.
func (t *training) Exchanges() uint64 { return t.counters.Exchanges() }

// Progress implements trainer.Run.
func (t *training) Progress() float64 { return t.work.progress() }

// Rate implements trainer.Run. For a progress that the machine gave to all peers, it is the
// rate of the schedule at that progress, whatever each peer's own estimate.
func (t *training) Rate(progress float64) float64 {
	if progress <= 0 {
		return t.work.orders.At(t.work.flock.Total()).Schedule.RateAt(t.work.progress())
	}
	return t.work.orders.Reached(progress, t.work.flock.Total(), t.work.flock.Participants()).Schedule.RateAt(progress)
}
