package optim

import (
	"fmt"
	"maps"
	"strings"

	"github.com/seed-97356399/murmuration/tensor"
)

// Outer adds momentum over many steps to another optimizer, for peers that exchange seldom:
// every so many steps it carries on a part of the way that the model has come since the last
// time, by its own steps and by exchanges (GASLoC: Cagnasso, Belilovsky and Oyallon, 2026).
// What it adds is part of a step: other peers see nothing of it.
//
// With y the parameters after the inner step, y₋ those of the last time and g the sum of the
// inner steps between, it adds (Rate−1)·g + γ·a·(y − y₋). Here a is 0 if no exchange was
// completed between, and else 1, or less where the sum would be longer than 2‖g‖, which
// partners still believe. γ is Momentum, and falls to 0 over the last fifth of the run.
// After a reset, a restart or a pause of more than 4·Every steps there is no y₋ the first time.
type Outer struct {
	// Inner makes the steps; it leaves the parameters that it is given as they are. Required.
	Inner Optimizer
	// Every is the number of steps from one time to the next, at least 1: as a rule those
	// between two exchanges.
	Every int
	// Rate multiplies what the inner steps come to. Default: 1.
	Rate float64
	// Momentum is γ, 0 to below 1. From 0.8 on peers that exchange in pairs diverge, but for bursts
	// (averaging.Pace.Burst).
	Momentum float64

	sum       tensor.Vector // g
	last      tensor.Vector // y₋, if known
	known     bool
	steps     int    // in sum
	exchanges uint64 // completed when last was set
	course    Course
}

const (
	// outerFades is the progress from which on γ falls.
	outerFades = 0.8
	// outerPause is the longest pause, in Every steps, after which y₋ still counts.
	outerPause = 4
	// outerReach bounds the momentum, in lengths of g.
	outerReach = 2
)

// Follow implements Follower.
func (o *Outer) Follow(c Course) {
	if o.course = c; c.Pause > float64(outerPause*o.Every) {
		o.known = false
	}
	if f, can := o.Inner.(Follower); can {
		f.Follow(c)
	}
}

// Delta implements Optimizer.
func (o *Outer) Delta(grad, x tensor.Vector, rate float64) {
	o.Inner.Delta(grad, x, rate)
	if len(o.sum) != len(grad) {
		o.sum, o.last = make(tensor.Vector, len(grad)), make(tensor.Vector, len(grad))
		o.known, o.steps = false, 0
	}
	tensor.Add(o.sum, grad)
	if o.steps++; o.steps < o.Every || !tensor.Finite(grad) {
		return
	}
	tensor.Add(x, grad)                           // y
	tensor.ScaledDifference(o.last, 1, x, o.last) // the way
	if share := o.share(); share > 0 {
		tensor.Axpy(grad, float32(share), o.last)
	}
	if o.Rate != 0 {
		tensor.Axpy(grad, float32(o.Rate-1), o.sum)
	}
	copy(o.last, x)
	clear(o.sum)
	o.known, o.steps, o.exchanges = true, 0, o.course.Exchanges
}

// share is γ·a for the way that the model has come.
func (o *Outer) share() float64 {
	gamma := o.Momentum * min(1, (1-o.course.Progress)/(1-outerFades))
	if way := tensor.Norm2(o.last); o.known && o.course.Exchanges != o.exchanges && way > 0 {
		return min(gamma, outerReach*tensor.Norm2(o.sum)/way)
	}
	return 0
}

// Reset implements Resetter.
func (o *Outer) Reset() {
	clear(o.sum)
	o.known, o.steps = false, 0
	if inner, can := o.Inner.(Resetter); can {
		inner.Reset()
	}
}

// Validate implements Validator.
func (o *Outer) Validate(layout *tensor.Layout) error {
	var f faults
	f.share("Momentum", o.Momentum)
	f.amount("Rate", o.Rate)
	if o.Every < 1 {
		f.add("Every is %d: want at least 1 step", o.Every)
	}
	if o.Inner == nil {
		f.add("Inner is missing: give the optimizer that makes the steps")
	}
	if inner, can := o.Inner.(Validator); can {
		if err := inner.Validate(layout); err != nil {
			f.add("Inner: %w", err)
		}
	}
	return f.joined()
}

const kindOuter, vectorOuter = "outer ", "outer"

// State implements Stateful: it is that of Inner, with g beside it.
func (o *Outer) State() (s State) {
	if inner, can := o.Inner.(Stateful); can {
		s = inner.State()
	}
	s.Kind = kindOuter + s.Kind
	if o.sum != nil {
		inner := s.Vectors
		s.Vectors = map[string]tensor.Vector{vectorOuter: o.sum}
		maps.Copy(s.Vectors, inner)
	}
	return s
}

// Restore implements Stateful. It also takes a state that Inner had without it.
func (o *Outer) Restore(s State) error {
	var sum tensor.Vector
	if kind, outer := strings.CutPrefix(s.Kind, kindOuter); outer {
		if sum = s.Vectors[vectorOuter]; !tensor.Finite(sum) {
			return fmt.Errorf("restoring the state of %s: %s: %w", s.Kind, vectorOuter, ErrNotFinite)
		}
		s.Kind, s.Vectors = kind, maps.Clone(s.Vectors)
		delete(s.Vectors, vectorOuter)
	}
	if inner, can := o.Inner.(Stateful); can {
		if err := inner.Restore(s); err != nil {
			return err
		}
	} else if s.Kind != "" {
		return fmt.Errorf("restoring the state of %s: the optimizer within cannot take one: give the same optimizer, or begin with another folder", s.Kind)
	}
	o.sum, o.last = sum, make(tensor.Vector, len(sum))
	o.known, o.steps = false, 0
	return nil
}
