package peer

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// updates makes the steps of machines that average gradients (collective.Traits.Gradients):
// steps of the mean of all peers' gradients, or, at a parameter server, of what workers have
// sent. The peer's optimizer makes them, one at a time, while the trainer waits or computes.
type updates struct {
	trainer   *trainer.Trainer
	replica   *replica.Replica
	optimizer optim.Optimizer
	loop      conversations.Loop // receives the end of each update
	life      *tasks.Life
	log       *zap.Logger

	room    chan struct{} // holds a token while no update is under way
	mean, x tensor.Vector // of the update; the holder of the token owns them
	version atomic.Uint64 // of the parameters, as the machine said last
	faults  chan error    // why the last update, or gradient, was left out; holds one
	warned  bool          // that the optimizer has no Reset; the holder of the token owns it
}

func newUpdates(u *updates) *updates {
	values := u.replica.Len()
	u.room, u.faults = make(chan struct{}, 1), make(chan error, 1)
	u.mean, u.x = make(tensor.Vector, values), make(tensor.Vector, values)
	u.room <- struct{}{}
	return u
}

// begin has the optimizer make a step of the sum. The sum is copied at once, so that later
// changes by the machine do not affect the step; the loop waits for an earlier update that
// is under way.
func (u *updates) begin(action collective.Action) {
	<-u.room
	u.replica.Drain(u.mean, action.Transfer.Part, action.Transfer.Parts, action.Weight)
	begun := u.life.Tasks.Spawn(func() {
		if action.Forget {
			u.warn()
		}
		if err := u.trainer.Update(action, u.mean, u.x); err != nil {
			u.log.Warn("leaving out an update", zap.Error(err))
			u.fault(err)
		}
		u.room <- struct{}{}
		u.loop.Event(collective.Event{Event: averaging.Event{Kind: collective.Updated}, Transfer: action.Transfer})
	})
	if !begun { // the peer is closing
		u.room <- struct{}{}
	}
}

// at is the version of the parameters, of which it is known whether they are the initial ones; 0 if it is not known, or without updates.
func (u *updates) at(initial bool) (v uint64) {
	if u == nil {
		return 0
	}
	if v = u.version.Load(); v == 0 && initial {
		v = 1
	}
	return v
}

// warn logs once that the optimizer cannot reset its state. The caller holds the token.
func (u *updates) warn() {
	if _, can := u.optimizer.(optim.Resetter); can || u.warned {
		return
	}
	u.warned = true
	u.log.Warn("a peer has come, and the optimizer has no method Reset to forget past gradients with: if it remembers any, the models of the peers stay apart. Give it one (see optim.Resetter)",
		zap.String("optimizer", fmt.Sprintf("%T", u.optimizer)))
}

// fault stores the error with which the trainer's next step fails.
func (u *updates) fault(err error) {
	select {
	case u.faults <- err:
	default: // the last one has not been read yet
	}
}

// computation is the last call of a caller's gradient function.
type computation struct {
	runs  bool
	told  bool      // the machine has been told of a part of the gradient
	ended time.Time // when it returned
}

// compute computes a gradient, and returns the event for the machine.
func (c *computation) compute(t *training, x, grad tensor.Vector, gradient func(x, grad tensor.Vector) (Result, error)) (collective.Event, error) {
	c.runs, c.told = true, false
	result, err := gradient(x, grad)
	c.runs, c.ended = false, time.Now()
	if err != nil {
		return collective.Event{}, fmt.Errorf("step %d: computing the gradient: %w", t.work.flock.Steps()+1, err)
	}
	if t.life.IsClosing() { // by now the machine may be that of the node's next trainer
		return collective.Event{}, ErrClosed
	}
	if result.Empty {
		return t.Empty()
	}
	return t.Gradient(t.life.Now(), result.Loss, result.Samples)
}

// ready tells the machine that the gradient is ready from one value on.
func (c *computation) ready(t *training, from, samples int) {
	if !c.runs || t.life.IsClosing() {
		return
	}
	if event, wanted := t.Ready(from, samples); wanted {
		event.Initial = t.initial()
		c.told = t.loop.Event(event) || c.told
	}
}

// lost tells the machine, if it knows of the gradient, that there is none.
func (c *computation) lost(t *training) {
	if c.told && !t.life.IsClosing() {
		t.loop.Event(collective.Event{Event: averaging.Event{Kind: collective.GradientLost}})
	}
}

// Ready may be called by the gradient function of Step, in its goroutine: grad has its final values from the from-th on,
// those of a mean over so many samples; only values before them may still be written to. Back-propagation has those of the
// last layers first, and nn.Trainer tells of them. An algorithm that averages gradients then begins to send them while the rest is
// computed; others make no use of it. If the function fails later, nothing is applied, but for what a parameter server has of it.
func (t *Trainer) Ready(from, samples int) { t.steps.computation.ready(t.steps, from, samples) }

// Factors may be called by the gradient function of Step, in its goroutine, before it returns or calls Ready of these values: what grad
// has of a matrix of the layout, whose first value is the at-th, is the sum over rows of the products of errors, one for each row
// of the matrix, and inputs, one for each column. nn.Trainer has them of its Linear layers. Where they are fewer numbers than the matrix,
// an algorithm that sends gradients to a parameter server sends these, with codec raw, and others make no use of them. So the server
// sees the rows themselves, where the mean gradient tells of them only together: leave it be where rows must not leave their
// member. It copies them. May be called several times for a matrix, with further rows.
func (t *Trainer) Factors(at int, inputs, errors tensor.Vector) {
	if t.steps.computation.runs {
		t.steps.Trainer.Factors(at, inputs, errors)
	}
}
