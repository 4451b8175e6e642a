package peertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// Defaults and bounds of a Simulation.
const (
	defaultSimulated = 16
	maxSimulated     = topology.MaxMembers
	defaultLimit     = 1000 * time.Hour
	defaultStepTime  = 10 * time.Millisecond
	simulatedWindow  = 64 // slices in flight: no link needs more
	defaultJitter    = 0.1
	defaultStall     = 5 * time.Second
	defaultEvaluate  = 32
	glanced          = 4 // peers evaluated at each point of the curve
)

// Simulation is a training in virtual time: the machines, replicas and frames of package
// peer, without its clocks, sockets and goroutines. Task and Work are required; the
// zero values of the others are useful.
type Simulation struct {
	// Peers is the number of peers, later joiners included, up to topology.MaxMembers. Default: 16.
	Peers int
	// Task is what the peers learn.
	Task Task
	// Optimizer makes the optimizer of a peer. Default: SGD with momentum 0.9.
	Optimizer func() optim.Optimizer
	// Schedule is the learning rate over the flock's progress. Here all peers know the
	// progress exactly; in a real flock it comes, a moment late, from the members' records.
	Schedule optim.Schedule
	// Work says when the run is over; Grace is unused, and so is Until.Evaluate: Task evaluates, which takes no virtual time.
	Work peer.Work
	// Exchange says how models are averaged, and by which machine. Lanes and codecs chosen
	// by link have no effect here.
	Exchange peer.Exchange
	// Pipeline, if not nil, cuts the model into stages, of which each peer trains one; Exchange is then among those of a stage.
	Pipeline *Pipeline
	// Stall bounds the wait for a partner's next frame. Default: 5 s, as of a peer.
	Stall time.Duration
	// World is the environment of the peers.
	World World
	// Watch says what is measured during the run.
	Watch Watch
	// Limit bounds the virtual time. Default: 1000 hours.
	Limit time.Duration
	// Seed makes compute times, losses and the machines' choices. The same Simulation gives the same Outcome,
	// to the last bit.
	Seed uint64
}

// Task is what the peers of a simulation learn. Its methods may be called for several peers
// at once, but not for the same peer at once.
type Task interface {
	// Params makes the model with its initial values, anew for each peer.
	Params() *tensor.Params
	// Gradient writes peer i's gradient at x, over the next of its batches, into grad,
	// which is zero. samples is the batch size that the algorithm asks for, if it divides
	// work by speed; 0 leaves it to the task.
	Gradient(i, samples int, x, grad tensor.Vector) (peer.Result, error)
	// Evaluate returns a model's accuracy and mean loss on held-out data. With glance a
	// part of the data is enough.
	Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64)
}

// Gradual is a Task whose gradients have their last values before they have all, as those of layers do.
type Gradual interface {
	// Readiness is when the gradient has its final values from one on, as a share of a step, the last values first.
	Readiness() []Ready
}

// Ready tells that a gradient has its final values from one on when a share of the step is done.
type Ready = sim.Ready

// Factored is a Task whose gradients have matrices that are products of Factors, as peer.Trainer.Factors takes them.
type (
	Factored = sim.Factored
	Factors  = sim.Factors
)

// ErrStandstill: no event is left in a simulated world, and the work is not done.
var ErrStandstill = errors.New("the simulated flock has come to a standstill")

// ErrLimit: the work was not done within Simulation.Limit of virtual time.
var ErrLimit = errors.New("the simulated run took longer than its limit")

// Simulate runs a simulation to its end. When ctx ends, or the run fails, the Outcome is
// that of the moment.
func Simulate(ctx context.Context, s Simulation) (Outcome, error) {
	if err := s.validate(); err != nil {
		return Outcome{}, fmt.Errorf("simulation: %w", err)
	}
	r, err := newRunning(s.withDefaults())
	if err != nil {
		return Outcome{}, fmt.Errorf("simulation: %w", err)
	}
	if err := r.run(ctx); err != nil {
		return r.outcome(), fmt.Errorf("simulation: %w", err)
	}
	return r.outcome(), nil
}

func (s Simulation) validate() error {
	var f faults
	f.note(s.Peers < 0 || s.Peers > maxSimulated, "Peers is %d: want 1 to %d, or 0 for %d", s.Peers, maxSimulated, defaultSimulated)
	if f.note(s.Task == nil, "Task is nil"); s.Task != nil {
		f.within("Exchange.Codec", s.Exchange.Codec.Validate(s.Task.Params().Layout()))
	}
	if s.Task != nil && s.Optimizer != nil {
		if o, can := s.Optimizer().(optim.Validator); can {
			f.within("Optimizer", o.Validate(s.Task.Params().Layout()))
		}
	}
	f.note(s.Exchange.Codec.Choosing(), "Exchange.Codec is %s: simulated links are not measured, name a codec", quant.Auto)
	f.within("Exchange.Pace", s.Exchange.Pace.Validate())
	f.note(!slices.Contains(topology.Shapes(), s.Exchange.Topology), "Exchange.Topology is %d: want one of %v", s.Exchange.Topology, topology.Shapes())
	f.note(s.Work.Steps == 0 && s.Work.StepsPerPeer == 0, "Work is none: give Steps or StepsPerPeer")
	u := s.Work.Until
	f.note(!(u.Accuracy >= 0 && u.Accuracy <= 1) || !(u.Loss >= 0) || u.Plateau < 0 || u.Deadline < 0,
		"Work.Until: Accuracy %v, Loss %v, Plateau %d, Deadline %s: want an accuracy from 0 to 1, and nothing below 0", u.Accuracy, u.Loss, u.Plateau, u.Deadline)
	if s.Pipeline != nil {
		f.within("Pipeline", s.Pipeline.validate(s))
	}
	f.note(s.Limit < 0, "Limit is %s: it may not be negative", s.Limit)
	f.within("World", s.World.validate(cmp.Or(s.Peers, defaultSimulated)))
	w := s.Watch
	f.note(w.Record != nil && len(s.World.Links.Sites) > 0, "Watch.Record and World.Links.Sites are both given: a recording has no sites")
	f.note(w.Evaluate < 0 || w.Points < 0, "Watch has Evaluate %d and Points %d: neither may be negative", w.Evaluate, w.Points)
	return errors.Join(f...)
}

func (s Simulation) withDefaults() Simulation {
	if s.Optimizer == nil {
		s.Optimizer = func() optim.Optimizer { return &optim.SGD{Momentum: optim.DefaultMomentum} }
	}
	s.Peers, s.Limit = cmp.Or(s.Peers, defaultSimulated), cmp.Or(s.Limit, defaultLimit)
	s.Stall = cmp.Or(s.Stall, defaultStall)
	s.World.Compute.Step = cmp.Or(s.World.Compute.Step, defaultStepTime)
	s.World.Compute.Jitter = max(cmp.Or(s.World.Compute.Jitter, defaultJitter), 0)
	if s.Pipeline != nil {
		s.Pipeline = s.Pipeline.withDefaults(s.World.Compute.Step)
	}
	s.Watch.Evaluate = cmp.Or(s.Watch.Evaluate, defaultEvaluate)
	return s
}

// faults are all faults of a Simulation.
type faults []error

// note adds a fault if wrong is true.
func (f *faults) note(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// within adds the faults of a part.
func (f *faults) within(part string, err error) { f.note(err != nil, part+": %w", err) }

// target is the total number of steps for so many peers.
func (s Simulation) target(peers int) uint64 {
	target := uint64(math.MaxUint64)
	if s.Work.Steps > 0 {
		target = s.Work.Steps
	}
	if s.Work.StepsPerPeer > 0 {
		target = min(target, s.Work.StepsPerPeer*uint64(peers))
	}
	return target
}
