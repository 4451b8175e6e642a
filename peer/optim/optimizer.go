// Package optim is the vocabulary of a step: optimizers, which turn a gradient into a
// step, and schedules, which tell the learning rate. Both are what peer.Config asks for.
package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// Optimizer turns a gradient into a step. Its state stays with the peer and is
// never exchanged. Only the trainer calls it, so it need not be safe for
// concurrent use; one Optimizer must not be shared by two peers.
type Optimizer interface {
	// Delta overwrites grad, the gradient at parameters x, with the step to be
	// added to the parameters at learning rate rate. x is a snapshot and may be
	// scribbled over. All calls have vectors of the same length. Delta must not call the
	// peer: nobody takes a copy of the model while it runs. Both vectors are zero where no
	// optimizer makes the step: in ranges that are Frozen or of kind Statistic.
	Delta(grad, x tensor.Vector, rate float64)
}

// Resetter is an Optimizer that can forget what it remembers from step to step, as every
// one that remembers anything should. A peer calls Reset when a step was not finite, and
// with baseline.AllReduce when a peer comes, or comes back, that has no such memory: all
// forget theirs then, and make the same steps. Without Reset their models stay apart, of
// which the log warns once.
type Resetter interface {
	Optimizer
	Reset()
}

// Follower is an Optimizer whose steps depend on how the run goes, as those of Outer do.
type Follower interface {
	Optimizer
	// Follow is called before the Delta of each gradient of the peer's own. Updates of gradients
	// that are averaged first (allreduce, ps-*) come without it.
	Follow(Course)
}

// Course is how the run goes when a step is made.
type Course struct {
	// Progress is the share of the flock's work that is done, 0 to 1; 0 if there is no end.
	Progress float64
	// Exchanges counts those that this peer has completed.
	Exchanges uint64
	// Pause is the time since the last step, in usual times from one step to the next.
	Pause float64
}

// Validator is an Optimizer that can tell what is wrong with its settings, as those of this
// package are. A peer asks when it starts.
type Validator interface {
	Optimizer
	// Validate reports all faults of the settings at once, for a model of this layout; nil
	// is for any.
	Validate(layout *tensor.Layout) error
}

// clipFloor is added to the norm of a gradient, as torch.nn.utils.clip_grad_norm_ does.
const clipFloor = 1e-6

// clip shortens a gradient that is longer than most, if that is above 0. One that is not
// finite stays so.
func clip(grad tensor.Vector, most float64) {
	if most <= 0 {
		return
	}
	if share := most / (tensor.Norm2(grad) + clipFloor); share < 1 {
		tensor.Scale(grad, float32(share))
	}
}

// faults are what is wrong with the settings of an optimizer.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

func (f *faults) share(name string, value float64) {
	if !(value >= 0 && value < 1) {
		f.add("%s is %v: want 0 to below 1", name, value)
	}
}

func (f *faults) amount(name string, value float64) {
	if !(value >= 0) || math.IsInf(value, 0) {
		f.add("%s is %v: want 0 or a positive number", name, value)
	}
}

// common takes the settings that all optimizers here have.
func (f *faults) common(decay, clip float64, ranges error) {
	f.amount("WeightDecay", decay)
	f.amount("Clip", clip)
	if ranges != nil {
		*f = append(*f, ranges)
	}
}

func (f *faults) joined() error { return errors.Join(*f...) }
