// Package trainer makes the steps of one peer: it hands out a snapshot for a gradient,
// has the optimizer make a step of it at the schedule's rate, adds the step to the
// replica, and tells the machine what its pace asks to know of it. With a machine that
// averages gradients it hands the gradient over, and makes the updates that the machine
// asks for. What is frozen has no step, and a statistic's is what the gradient says.
//
// It is pure: the time is an argument, and it waits for nothing but the replica's locks.
// When the next step may begin is its caller's business: package peer's, or the
// simulated world's.
package trainer

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// ErrReplaced: the step was made for a model that another has taken the place of
// meanwhile. It is left out.
var ErrReplaced = errors.New("the model was replaced by the flock's")

// ErrOver: the step comes after Finish, and is left out.
var ErrOver = errors.New("the run is over")

// ErrClosed: the step comes after Close, and is left out.
var ErrClosed = errors.New("the trainer is closed")

// maxSquaredNorm bounds the squared norm of a gradient: beyond, the squares that an
// optimizer keeps would be infinite as float32.
const maxSquaredNorm = 1e36

// Run is the run that a trainer takes part in. All but Made may be called by several
// goroutines at once.
type Run interface {
	// Made takes account of a step that has been made.
	Made(Step)
	// Steps are those of this peer, those of all peers together, and the number of peers.
	Steps() (own, all uint64, peers int)
	// Progress is the share of the flock's work that is done, 0 to 1, or 0 if there is no
	// end.
	Progress() float64
	// Rate is the learning rate at a progress of which all peers have been told, or where
	// this peer takes the flock to be if that is 0.
	Rate(progress float64) float64
}

// Config makes a Trainer. All of it but Lent is required.
type Config struct {
	Replica   *replica.Replica
	Optimizer optim.Optimizer
	// Traits are the machine's, and Pace tells what it wants to know of steps.
	Traits collective.Traits
	Pace   averaging.Pace
	Run    Run
	// Lent: the caller lends the room for gradients, with Lend. Trade cannot be called then.
	Lent bool
}

// Trainer makes the steps of one peer. One goroutine calls Begin, Gradient, Trade,
// Proceed and Rest. Update, Save, Finish and Close may be called by others meanwhile, Update
// by one at a time.
type Trainer struct {
	config   Config
	excluded *excluded // what it holds changes while the steps are held

	x, grad tensor.Vector // of the step in the making
	model   uint64        // replacements of the model taken into account; changes while the steps are held
	handed  Step          // of the gradient that the machine has
	waited  time.Duration // for slices, since the last step
	pace    pace

	over, closed bool // after Finish and Close; they change while the replica's steps are held
}

// New makes a trainer, and gives the replica the buffers that the machine needs.
func New(config Config) *Trainer {
	n := config.Replica.Len()
	t := &Trainer{config: config, excluded: newExcluded(config.Replica.Layout()), x: make(tensor.Vector, n)}
	if !config.Lent {
		t.grad = make(tensor.Vector, n)
	}
	if config.Traits.Gradients || config.Traits.Pools {
		config.Replica.UseGradients()
	}
	return t
}

// Begin begins a step. It lends a snapshot of the parameters, and a zeroed vector for the
// mean gradient there.
func (t *Trainer) Begin() (x, grad tensor.Vector) {
	t.renew()
	t.waited += t.config.Replica.Snapshot(t.x)
	if t.config.Lent {
		t.grad = nil // another has it by now
	}
	clear(t.grad)
	return t.x, t.grad
}

// Lend lends the vector in which the gradient of the step in the making is, until Gradient has
// returned. Begin's second result is nil then.
func (t *Trainer) Lend(grad tensor.Vector) { t.grad = grad }

// renew has the optimizer forget what it knows of a model that was replaced, and tells
// whether one was.
func (t *Trainer) renew() bool {
	r := t.config.Replica
	if r.Replaced() == t.model {
		return false
	}
	r.Hold()
	defer r.Release()
	t.model = r.Replaced()
	t.forget()
	return true
}

// Gradient takes the gradient that has been written since Begin, of a mean loss over so
// many samples, and returns the event for the machine. It fails with ErrNotFinite,
// ErrReplaced, ErrOver or ErrClosed if there is no step to be made of it; nothing is changed then.
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
	if t.config.Traits.Gradients {
		return t.hand(step)
	}
	t.config.Replica.Judgement().ByGradient(t.grad)
	step.Rate = t.config.Run.Rate(0)
	waited, err := t.optimize(t.grad, t.x, step.Rate, 0, t.model)
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

// hand hands the gradient over to the machine. What local statistics have changed by is added
// at once: no update of the machine's would, at a worker of a server.
func (t *Trainer) hand(step Step) (collective.Event, error) {
	step.Samples = max(step.Samples, 1)
	counted := t.excluded.takeLocal(t.grad, t.x)
	if err := t.config.Replica.PutGradient(t.grad, float64(step.Samples)); err != nil {
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
		Samples: step.Samples,
	}, nil
}

// Trade adds x − base as steps that the caller's own optimizer has made since base was
// handed over, overwrites both with the parameters as they are, and returns the event to
// tell the machine of each step. Without a base x is the way itself, and stays as it is. It
// fails as Gradient does, with both as they were; but with ErrReplaced, base is that of
// another model, and both are overwritten. It must not be called if the machine averages
// gradients.
func (t *Trainer) Trade(now time.Duration, x, base tensor.Vector, made Made) (collective.Event, error) {
	if made.Samples < 0 {
		return collective.Event{}, t.fault("%w; the step was not applied", samplesError(made.Samples))
	}
	replaced := t.renew() // the caller made its steps for the model before
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

// measures tells whether the machine wants to know how long steps are.
func (t *Trainer) measures() bool { return t.config.Pace.Drift > 0 || t.config.Pace.Consensus }

// made counts steps that have been added, of this length together, and returns what the
// machine is told of each.
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

// Proceed takes the machine's leave to go on: a gradient that it was handed counts as a
// step from then on.
func (t *Trainer) Proceed(now time.Duration) {
	if t.config.Traits.Gradients {
		t.handed.Rate = t.config.Run.Rate(0)
		t.count(now, t.handed, 1)
	}
}

// Rest notes that the trainer was kept from its work on purpose: the time is none of a
// step.
func (t *Trainer) Rest() { t.pace.rest() }

// Update makes the step that the machine asks for, of the mean gradient that the replica
// has been drained of. x is scratch as long as that.
func (t *Trainer) Update(a collective.Action, mean, x tensor.Vector) error {
	if a.Forget {
		t.config.Replica.Hold()
		t.forget()
		t.config.Replica.Release()
	}
	model := t.config.Replica.Replaced()
	t.config.Replica.Snapshot(x)
	if _, err := t.optimize(mean, x, t.config.Run.Rate(a.Progress), float32(a.Share), model); err != nil {
		return fmt.Errorf("the update of the mean gradient: %w", err)
	}
	return nil
}

// optimize turns the gradient at x, of that replacement of the model, into a step, or a
// share of one if that is above 0, and adds it: of statistics, all of it. A consistent copy has the optimizer's state
// and the parameters of before both, or after both.
func (t *Trainer) optimize(grad, x tensor.Vector, rate float64, share float32, model uint64) (waited time.Duration, err error) {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	t.excluded.hide(grad, x)
	t.config.Optimizer.Delta(grad, x, rate)
	if share > 0 {
		tensor.Scale(grad, share)
	}
	t.excluded.restore(grad)
	waited, err = t.add(grad, model)
	if errors.Is(err, optim.ErrNotFinite) {
		t.forget() // its state holds what made the step so
	}
	return waited, err
}

// add adds a step, unless it comes too late, is one for another model, or nobody would
// take the model after it. The steps are held.
func (t *Trainer) add(delta tensor.Vector, model uint64) (waited time.Duration, err error) {
	switch r := t.config.Replica; {
	case !tensor.Finite(delta) || r.Plausible(delta) != nil:
		return 0, t.fault("%w, or so long that nobody would take the model: lower the learning rate; it was not applied", optim.ErrNotFinite)
	case t.closed || t.over:
		return 0, t.late()
	case r.Replaced() != model:
		return 0, ErrReplaced
	default:
		return r.AddHeld(delta), nil
	}
}

// late is why a step comes too late, of which one is known to hold. The steps are held.
func (t *Trainer) late() error {
	if t.closed {
		return ErrClosed
	}
	return ErrOver
}

// fault is why the next step cannot be made.
func (t *Trainer) fault(format string, err error) error {
	own, _, _ := t.config.Run.Steps()
	return fmt.Errorf("step %d: "+format, own+1, err)
}

// forget has the optimizer forget past gradients, if it can. The steps are held.
func (t *Trainer) forget() {
	if o, can := t.config.Optimizer.(optim.Resetter); can {
		o.Reset()
	}
}

// Finish notes that the run is over: with a machine that makes one model of all, no step
// is added any more once it has returned.
func (t *Trainer) Finish() {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	t.over = t.config.Traits.Pools
}

// Close lets no step be added any more once it has returned, of whichever machine: one that
// is in the making comes too late.
func (t *Trainer) Close() {
	t.config.Replica.Hold()
	defer t.config.Replica.Release()
	t.closed = true
}

// Save copies the parameters, and the optimizer's state if it can be kept, both of one
// moment between two steps. Room is made where there is not enough. A step that comes just
// then waits while the optimizer's vectors are copied.
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
			lent = optim.State{Kind: lent.Kind} // it is of the model before
		}
		makeRoom(state, lent) // if there is more of it by now
		state.Kind, state.Steps = lent.Kind, lent.Steps
		for name, from := range lent.Vectors {
			copy(state.Vectors[name], from)
		}
	})
}
