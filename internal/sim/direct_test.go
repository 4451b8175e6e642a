package sim_test

import (
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// stepper is a task that makes steps by itself: it fills delta with what a step from x
// changes.
type stepper interface {
	Duration(peer, step, samples int) time.Duration
	Step(peer, step int, x, delta []float32)
}

// direct is the task of a stepper, whose steps stand for gradients. Its optimizer is asIs.
type direct struct {
	stepper
	steady
}

// Gradient implements sim.Task.
func (d direct) Gradient(_, peer, step int, x, grad []float32) (loss float64, samples int, err error) {
	d.Step(peer, step, x, grad)
	tensor.Scale(grad, -1)
	return 0, 1, nil
}

// asIs is an optimizer that makes the step which a gradient stands for.
type asIs struct{}

func (asIs) Delta(grad, _ tensor.Vector, _ float64) { tensor.Scale(grad, -1) }

// steady is a run without an end, at a rate that nobody asks for.
type steady struct{}

func (steady) Progress(int) float64      { return 0 }
func (steady) Rate(int, float64) float64 { return 1 }

// descent makes a step of a peer's gradient, in its place.
type descent interface {
	Delta(peer int, x, grad []float32)
}

// descending is the optimizer of one peer.
type descending struct {
	descent
	peer int
}

func (o descending) Delta(grad, x tensor.Vector, _ float64) { o.descent.Delta(o.peer, x, grad) }
