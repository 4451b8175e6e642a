package trainer

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// Why a step is left out.
var (
	// ErrReplaced: the model was replaced while the step was being made.
	ErrReplaced = errors.New("the model was replaced by the flock's")
	// ErrOver: the step comes after Finish.
	ErrOver = errors.New("the run is over")
	// ErrClosed: the step comes after Close.
	ErrClosed = errors.New("the trainer is closed")
	errEmpty  = errors.New("an empty gradient, as in the rounds of a pipeline, is for algorithms that average gradients, such as AllReduce: this one makes a step of each")
)

// steps makes steps of gradients, and adds them to the replica.
type steps struct {
	replica  *replica.Replica
	run      Run
	excluded *excluded // its vectors change only while the steps are held
	memories memories  // likewise

	over, closed bool // after Finish and Close; they change while the steps are held
}

func newSteps(c Config) steps {
	return steps{replica: c.Replica, run: c.Run, excluded: newExcluded(c.Replica.Layout())}
}

// optimize makes a step of the gradient at x and adds it; model is the replacement that x belongs to. The update may
// be of a part of the model. A consistent copy has the optimizer's state and the parameters both from before the step,
// or both from after it.
func (s *steps) optimize(by optim.Optimizer, grad, x tensor.Vector, rate float64, update collective.Action, model uint64) (waited time.Duration, err error) {
	s.replica.Hold()
	defer s.replica.Release()
	from, to := s.replica.Part(update.Transfer.Part, update.Transfer.Parts)
	if err := s.memories.turn(by, update.Transfer, from, to); err != nil {
		return 0, err
	}
	clear(x[:from]) // as in ranges that the optimizer does not change
	clear(x[to:])
	s.delta(by, grad, x, rate, float32(update.Share))
	clear(grad[:from])
	clear(grad[to:])
	if err := s.accept(by, grad, model); err != nil {
		return 0, err
	}
	return s.replica.AddHeld(grad), nil
}

// delta makes the gradient at x a step. If share is above 0, it is that share of the step, except for statistics.
// The steps are held.
func (s *steps) delta(by optim.Optimizer, grad, x tensor.Vector, rate float64, share float32) {
	s.excluded.hide(grad, x)
	by.Delta(grad, x, rate)
	if share > 0 {
		tensor.Scale(grad, share)
	}
	s.excluded.restore(grad)
}

// accept is check for a step of an optimizer, which forgets the state that has caused a faulty one.
func (s *steps) accept(by optim.Optimizer, delta tensor.Vector, model uint64) error {
	err := s.check(delta, model)
	if errors.Is(err, optim.ErrNotFinite) {
		s.forget(by)
	}
	return err
}

// check tells what keeps a step from being added: it comes too late, is for another model, or would make the model
// implausible to others. The steps are held.
func (s *steps) check(delta tensor.Vector, model uint64) error {
	switch r := s.replica; {
	case !tensor.Finite(delta) || r.Plausible(delta) != nil:
		return s.fault("%w, or so long that nobody would take the model: lower the learning rate; it was not applied", optim.ErrNotFinite)
	case s.closed || s.over:
		return s.late()
	case r.Replaced() != model:
		return ErrReplaced
	}
	return nil
}

// add adds a step, if it may be. The steps are held.
func (s *steps) add(delta tensor.Vector, model uint64) (waited time.Duration, err error) {
	if err := s.check(delta, model); err != nil {
		return 0, err
	}
	return s.replica.AddHeld(delta), nil
}

// late is the reason why a step comes too late; there is one. The steps are held.
func (s *steps) late() error {
	if s.closed {
		return ErrClosed
	}
	return ErrOver
}

// fault is why the next step cannot be made.
func (s *steps) fault(format string, err error) error {
	own, _, _ := s.run.Steps()
	return fmt.Errorf("step %d: "+format, own+1, err)
}

// part hands over the values of a gradient from one on, of which those from ready on have been before, and returns the
// event for the machine; false if they cannot be handed over, which put will say.
func (s *steps) part(grad tensor.Vector, ready *int, from, samples int) (collective.Event, bool) {
	if s.replica.PutRange(grad, from, *ready, float64(samples)) != nil {
		return collective.Event{}, false
	}
	*ready = from
	return collective.Event{
		Event:   averaging.Event{Kind: collective.GradientReady, Progress: s.run.Progress()},
		Samples: samples, From: s.replica.Ready(from),
	}, true
}

// put hands over a gradient whose values from one on part has handed over, but for local statistics.
func (s *steps) put(grad tensor.Vector, ready int, samples float64) error {
	for _, p := range s.excluded.local {
		if end := p.offset + p.length; end > ready {
			if err := s.replica.PutRange(grad, max(p.offset, ready), end, samples); err != nil {
				return err
			}
		}
	}
	return s.replica.PutRange(grad, 0, ready, samples)
}

// forget makes an optimizer forget past gradients, if it can. The steps are held.
func (s *steps) forget(o optim.Optimizer) {
	s.memories = memories{}
	if o, can := o.(optim.Resetter); can {
		o.Reset()
	}
}
