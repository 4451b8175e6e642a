// Package trainer makes the steps of one peer: it hands out a snapshot for a gradient, has
// the optimizer make a step of it at the schedule's rate, adds the step to the replica, and
// reports to the machine what its pace needs. With a machine that averages gradients it
// hands the gradient over, and makes the updates that the machine asks for; if the machine wants
// several steps between two updates, the gradient is what they came to. Frozen ranges
// have no step; the step of a statistic is its value in the gradient.
//
// It is pure: the time is an argument, and it waits for nothing but the replica's locks.
// The caller decides when the next step may begin: package peer, or the simulated world.
package trainer

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// maxSquaredNorm bounds the squared norm of a gradient: beyond, the squares that an
// optimizer keeps would be infinite as float32.
const maxSquaredNorm = 1e36

// Run is the run that a trainer takes part in. All but Made may be called by several
// goroutines at once.
type Run interface {
	// Made records a step.
	Made(Step)
	// Steps are the steps of this peer, the steps of all peers together, and the number of peers.
	Steps() (own, all uint64, peers int)
	// Exchanges is the number of exchanges that this peer has completed.
	Exchanges() uint64
	// Progress is the share of the flock's work that is done, 0 to 1, or 0 if there is no
	// end.
	Progress() float64
	// Rate is the learning rate at a progress that all peers know, or, if that is 0, at
	// this peer's own estimate.
	Rate(progress float64) float64
}

// Config makes a Trainer. All of it but Lent is required.
type Config struct {
	Replica   *replica.Replica
	Optimizer optim.Optimizer
	// Traits are the machine's, and Pace decides what is measured of steps.
	Traits collective.Traits
	Pace   averaging.Pace
	Run    Run
	// Lent: the caller provides the vector for gradients, with Lend. Trade cannot be called then.
	Lent bool
}

// Trainer makes the steps of one peer. One goroutine calls Begin, Gradient, Trade,
// Proceed and Rest. Update, Save, Finish and Close may be called by others meanwhile, Update
// by one at a time.
type Trainer struct {
	config Config
	steps

	x, grad tensor.Vector // of the current step
	model   uint64        // replacements of the model seen so far; changes only while the steps are held
	handed  Step          // of the gradient, or step, that the machine has been told of
	ready   int           // values of the gradient from here on have been handed over
	factors *replica.Factors
	local   *local        // if the machine wants several steps between two updates
	waited  time.Duration // for slices, since the last step
	pace    pace
}

// New makes a trainer, and gives the replica the buffers that the machine needs.
func New(config Config) *Trainer {
	n := config.Replica.Len()
	t := &Trainer{config: config, steps: newSteps(config), x: make(tensor.Vector, n)}
	if !config.Lent {
		t.grad = make(tensor.Vector, n)
	}
	if config.Traits.Gradients || config.Traits.Pools {
		t.factors = config.Replica.UseGradients()
	}
	config.Replica.Defer(config.Traits.Commits)
	if config.Traits.Local.Every > 0 {
		t.local = newLocal(config.Traits.Local, n)
	}
	return t
}

// Begin begins a step. It lends a snapshot of the parameters, and a zeroed vector for the
// mean gradient there.
func (t *Trainer) Begin() (x, grad tensor.Vector) {
	t.renew()
	if t.local == nil {
		t.waited += t.config.Replica.Snapshot(t.x)
	} else {
		t.waited += t.local.begin(t.config.Replica, t.x)
	}
	if t.config.Lent {
		t.grad = nil // the lender has it back
	}
	clear(t.grad)
	t.factors.Forget()
	t.ready = len(t.x)
	return t.x, t.grad
}

// Ready hands over the final values of the current gradient, from one on, as Gradient does of all. It returns false if the
// machine has no use for a part.
func (t *Trainer) Ready(from, samples int) (event collective.Event, wanted bool) {
	if !t.config.Traits.Gradients || t.local != nil || from < 0 || from > t.ready || t.config.Replica.Replaced() != t.model {
		return event, false
	}
	return t.part(t.grad, &t.ready, from, max(samples, 1))
}

// Factors takes rows of the factors of a matrix's gradient, before that is handed over.
func (t *Trainer) Factors(at int, inputs, errors tensor.Vector) { t.factors.Put(at, inputs, errors) }

// Lend provides the vector with the gradient of the current step, until Gradient has returned.
// Begin's second result is then nil.
func (t *Trainer) Lend(grad tensor.Vector) { t.grad = grad }

// renew resets the optimizer if the model was replaced, and tells whether it was.
func (t *Trainer) renew() bool {
	r := t.config.Replica
	if r.Replaced() == t.model {
		return false
	}
	r.Hold()
	defer r.Release()
	t.model = r.Replaced()
	t.forget(t.config.Optimizer)
	if t.local != nil {
		t.local.forget()
	}
	return true
}

// Gradient takes the gradient that has been written since Begin, of a mean loss over so many
// samples, and returns the event for the machine. It fails with ErrNotFinite, ErrReplaced, ErrOver
// or ErrClosed if no step can be made of it; nothing is changed then.
func (t *Trainer) Gradient(now time.Duration, loss float64, samples int) (collective.Event, error) {
	if samples < 0 {
		return collective.Event{}, t.fault("%w; the step was not applied", samplesError(samples))
	}
	if !(tensor.SumSquares(t.grad) <= maxSquaredNorm) || math.IsNaN(loss) { // false for NaN
		return collective.Event{}, t.fault("the gradient or the loss: %w: lower the learning rate, or check the data; the step was not applied", optim.ErrNotFinite)
	}
	if t.config.Replica.Replaced() != t.model {
		return collective.Event{}, ErrReplaced
	}
	step := Step{Loss: loss, Samples: samples}
	switch {
	case t.local != nil:
		return t.locally(now, step)
	case t.config.Traits.Gradients:
		return t.hand(step, step.Samples)
	}
	t.config.Replica.Judgement().ByGradient(t.grad)
	step.Rate = t.config.Run.Rate(0)
	t.follow(now)
	waited, err := t.optimize(t.config.Optimizer, t.grad, t.x, step.Rate, collective.Action{}, t.model)
	if err != nil {
		return collective.Event{}, err
	}
	step.Waited = waited
	length := 0.0
	if t.measures() {
		length = t.excluded.norm(t.grad)
	}
	return t.made(now, step, length, 1), nil
}

// follow tells the optimizer how the run goes, if it asks.
func (t *Trainer) follow(now time.Duration) {
	if o, asks := t.config.Optimizer.(optim.Follower); asks {
		run := t.config.Run
		o.Follow(optim.Course{Progress: run.Progress(), Exchanges: run.Exchanges(), Pause: t.pace.pause(now)})
	}
}

// locally adds a step to the local model, and after the last hands over what all came to.
func (t *Trainer) locally(now time.Duration, step Step) (collective.Event, error) {
	step.Rate = t.config.Run.Rate(0)
	t.follow(now)
	if err := t.apart(step.Rate); err != nil {
		return collective.Event{}, err
	}
	if !t.local.add(t.grad, step.Samples) {
		t.handed = step
		return collective.Event{Event: averaging.Event{Kind: averaging.StepDone}}, nil
	}
	step.Waited += t.config.Replica.Snapshot(t.x)
	t.local.gradient(t.grad, t.x, t.excluded.statistics)
	return t.hand(step, t.local.total)
}

// apart makes the gradient a step that is not added to the replica.
func (t *Trainer) apart(rate float64) error {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	by := t.config.Optimizer
	t.delta(by, t.grad, t.x, rate, 0)
	return t.accept(by, t.grad, t.model)
}

// hand hands the gradient of so many samples over to the machine. The changes of local statistics are added at
// once, since at a worker of a parameter server no update would add them.
func (t *Trainer) hand(step Step, samples int) (collective.Event, error) {
	step.Samples, samples = max(step.Samples, 1), max(samples, 1)
	counted := t.excluded.takeLocal(t.grad, t.x)
	if err := t.put(t.grad, t.ready, float64(samples)); err != nil {
		return collective.Event{}, t.fault("%w", err)
	}
	if counted {
		t.config.Replica.Hold()
		waited, err := t.add(t.x, t.model)
		t.config.Replica.Release()
		if err != nil {
			return collective.Event{}, err
		}
		step.Waited = waited
	}
	t.handed = step
	return collective.Event{
		Event:   averaging.Event{Kind: collective.GradientDone, Progress: t.config.Run.Progress()},
		Samples: samples,
	}, nil
}

// Empty takes part in a round of a machine that averages gradients, without samples: the mean is that of the others. It fails as Gradient does.
func (t *Trainer) Empty() (collective.Event, error) {
	if t.local != nil || !t.config.Traits.Gradients {
		return collective.Event{}, t.fault("%w", errEmpty)
	}
	t.config.Replica.PutNothing()
	t.handed = Step{Loss: math.NaN()}
	return collective.Event{Event: averaging.Event{Kind: collective.GradientDone, Progress: t.config.Run.Progress()}}, nil
}

// Trade adds x − base as steps that the caller's own optimizer has made since it received
// base, overwrites both with the current parameters, and returns the event to report for
// each step. Without a base, x itself is the difference, and stays unchanged. It fails as
// Gradient does, with both unchanged; but with ErrReplaced both are overwritten, since base
// belongs to the old model. It must not be called if the machine averages gradients, nor with a base if it commits by rounds.
func (t *Trainer) Trade(now time.Duration, x, base tensor.Vector, made Made) (collective.Event, error) {
	if made.Samples < 0 {
		return collective.Event{}, t.fault("%w; the step was not applied", samplesError(made.Samples))
	}
	replaced := t.renew() // the caller made its steps for the old model
	step, length := Step{Loss: made.Loss, Samples: made.Samples}, 0.0
	r, trade := t.config.Replica, replica.Trade{Own: t.grad, X: x, Base: base}
	r.Hold()
	defer r.Release()
	var err error
	switch {
	case base == nil && replaced:
		return collective.Event{}, ErrReplaced
	case base == nil:
		r.Judgement().ByStep(nil, x)
		step.Waited, err = t.add(x, t.model)
		if t.measures() {
			length = t.excluded.norm(x)
		}
	case t.closed || t.over:
		return collective.Event{}, t.late()
	case replaced || r.Replaced() != t.model:
		r.Snapshot(base)
		copy(x, base)
		return collective.Event{}, ErrReplaced
	default:
		if err := trade.Take(r); err != nil {
			return collective.Event{}, t.fault("%w; nothing was added", &notTakenError{err})
		}
		if t.measures() {
			length = t.excluded.distance(t.grad, base)
		}
		r.Judgement().ByStep(base, t.grad)
		step.Waited = trade.AddHeld(r)
	}
	if err != nil || made.Steps == 0 {
		return collective.Event{}, err
	}
	return t.made(now, step, length, made.Steps), nil
}

// measures tells whether the machine needs the length of steps.
func (t *Trainer) measures() bool { return t.config.Pace.Drift > 0 || t.config.Pace.Consensus }

// made counts added steps, of this length together, and returns the event to report for
// each.
func (t *Trainer) made(now time.Duration, step Step, length float64, steps int) collective.Event {
	between := t.count(now, step, steps)
	event, run, wanted := collective.Event{Event: averaging.Event{Kind: averaging.StepDone}}, t.config.Run, t.config.Pace
	if steps > 1 {
		event.Between = between
	}
	if wanted.BySpeed {
		own, all, peers := run.Steps()
		event.Speed = t.pace.speed.of(own, all, peers, now)
	}
	if !t.measures() {
		return event
	}
	event.Stride, event.Progress = t.pace.stride(length/float64(steps)), run.Progress()
	if wanted.Drift > 0 && event.Stride > 0 {
		event.Moved = t.config.Replica.Moved() / event.Stride
	}
	return event
}

// count counts steps that were made one after the other since the last, and returns about the
// time from one to the next.
func (t *Trainer) count(now time.Duration, step Step, steps int) time.Duration {
	step.Waited += t.waited
	t.waited = 0
	step.Between = t.pace.tick(now, steps)
	all := step.Samples
	for n := range steps {
		step.Samples = all*(n+1)/steps - all*n/steps
		t.config.Run.Made(step)
		step.Waited = 0
	}
	return step.Between
}

// Proceed handles the machine's Proceed: a gradient handed over now counts as a step.
func (t *Trainer) Proceed(now time.Duration) {
	if t.config.Traits.Gradients {
		t.handed.Rate = t.config.Run.Rate(0)
		t.count(now, t.handed, 1)
	}
}

// Rest notes that the trainer was stopped on purpose: the time until the next step is not
// measured.
func (t *Trainer) Rest() { t.pace.rest() }

// Update makes the step that the machine asks for, of the mean gradient drained from the
// replica. x is scratch of the same length.
func (t *Trainer) Update(a collective.Action, mean, x tensor.Vector) error {
	by, rate := t.config.Optimizer, t.config.Run.Rate(a.Progress)
	if t.local != nil {
		by, rate = &t.local.outer, t.local.Rate
	}
	if a.Forget {
		t.config.Replica.Hold()
		t.forget(by)
		t.config.Replica.Release()
	}
	model := t.config.Replica.Replaced()
	t.config.Replica.Snapshot(x)
	if _, err := t.optimize(by, mean, x, rate, a, model); err != nil {
		return fmt.Errorf("the update of the mean gradient: %w", err)
	}
	return nil
}

// Finish notes that the run is over: with a machine that merges all models, no step is
// added after Finish has returned.
func (t *Trainer) Finish() {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	t.over = t.config.Traits.Pools
}

// Close prevents further steps, with any machine: after it has returned, a step that is
// being made comes too late.
func (t *Trainer) Close() {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	t.closed = true
}

// Save copies the parameters, and the optimizer's state if it can be saved, both of one
// moment between two steps. It allocates memory where necessary. A step at the same time
// waits while the optimizer's vectors are copied.
func (t *Trainer) Save(params tensor.Vector, state *optim.State) {
	r := t.config.Replica
	stateful, can := t.config.Optimizer.(optim.Stateful)
	if !can {
		*state = optim.State{}
		r.Consistent(params)
		return
	}
	r.Hold()
	lent := stateful.State()
	r.Release()
	makeRoom(state, lent) // so that no step waits for new memory
	r.ConsistentWith(params, func() {
		lent := stateful.State()
		if r.Replaced() != t.model {
			lent = optim.State{Kind: lent.Kind} // it belongs to the old model
		}
		copyState(state, lent) // it may have grown by now
		t.memories.join(state)
	})
}
