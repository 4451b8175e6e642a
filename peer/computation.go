package peer

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/tensor"
)

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
	return t.Gradient(t.life.Now(), result.Loss, result.Samples)
}

// ready tells the machine that the gradient is ready from one value on.
func (c *computation) ready(t *training, from, samples int) {
	if !c.runs {
		return
	}
	if event, wanted := t.Ready(from, samples); wanted {
		event.Initial = t.fresh && t.work.flock.Age() == 0
		c.told = t.loop.Event(event) || c.told
	}
}

// lost tells the machine, if it knows of the gradient, that there is none.
func (c *computation) lost(loop conversations.Loop) {
	if c.told {
		loop.Event(collective.Event{Event: averaging.Event{Kind: collective.GradientLost}})
	}
}
