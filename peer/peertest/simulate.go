package peertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Defaults of a Simulation, and its bounds.
const (
	// DefaultSimulated is the number of peers.
	DefaultSimulated = 16
	// MaxSimulated bounds it.
	MaxSimulated = 4096
	// DefaultLimit is the virtual time after which a run is given up.
	DefaultLimit = 1000 * time.Hour
)

// Simulation is a training in virtual time: the machines, replicas and frames of package
// peer, without its clocks, sockets and goroutines. Task and Work are required; the
// zero values of the others are useful.
type Simulation struct {
	// Peers is their number, those that come later included. Default:
	// DefaultSimulated.
	Peers int
	// Task is what they learn.
	Task Task
	// Optimizer makes that of a peer. Default: SGD with momentum 0.9.
	Optimizer func() peer.Optimizer
	// Schedule is the learning rate over the flock's progress, which is known to all
	// exactly: in a real flock it is what members say of themselves, a moment ago.
	Schedule peer.Schedule
	// Work says when the run is over; Grace is unused.
	Work peer.Work
	// Exchange says how models are averaged, and by which machine. Lanes and codecs that
	// are left to the link have no meaning here.
	Exchange peer.Exchange
	// World is what the peers live in.
	World World
	// Watch says what is measured on the way.
	Watch Watch
	// Limit bounds the virtual time. Default: DefaultLimit.
	Limit time.Duration
	// Seed makes compute times and losses. The same Simulation gives the same Outcome,
	// to the last bit.
	Seed uint64
}

// Task is what the peers of a simulation learn. Its methods may be called for several
// peers at once, but never twice for one.
type Task interface {
	// Params makes the model with its initial values, anew for each peer.
	Params() *tensor.Params
	// Gradient writes peer i's gradient at x, over the next of its batches, into grad,
	// which is zero. Samples is how many the algorithm wants in it (see
	// averaging.BatchSizer), 0 if that is left to the task.
	Gradient(i, samples int, x, grad tensor.Vector) (peer.Result, error)
	// Evaluate is what a model is worth: its accuracy on held-out data and its mean
	// loss there. With glance a part of the data will do.
	Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64)
}

// ErrStandstill: nothing happens any more in a simulated world, and the work is not
// done.
var ErrStandstill = errors.New("the simulated flock has come to a standstill")

// ErrLimit: the work was not done within Simulation.Limit of virtual time.
var ErrLimit = errors.New("the simulated run took longer than its limit")

// Simulate runs a simulation to its end. When ctx ends, or the run is given up, the
// Outcome is what there was by then.
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
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.Peers < 0 || s.Peers > MaxSimulated {
		fault("Peers is %d: want 1 to %d, or 0 for %d", s.Peers, MaxSimulated, DefaultSimulated)
	}
	if s.Task == nil {
		fault("Task is nil")
	} else if err := s.Exchange.Codec.Validate(s.Task.Params().Layout()); err != nil {
		fault("Exchange.Codec: %w", err)
	}
	if s.Exchange.Codec.Choosing() {
		fault("Exchange.Codec is %s: simulated links are not measured, name a codec", quant.Auto)
	}
	if err := s.Exchange.Pace.Validate(); err != nil {
		fault("Exchange.Pace: %w", err)
	}
	if s.Work.Steps == 0 && s.Work.StepsPerPeer == 0 {
		fault("Work is none: give Steps or StepsPerPeer")
	}
	if s.Limit < 0 {
		fault("Limit is %s: it may not be negative", s.Limit)
	}
	if err := s.World.validate(s.withDefaults().Peers); err != nil {
		fault("World: %w", err)
	}
	return errors.Join(append(faults, s.Watch.validate())...)
}

func (s Simulation) withDefaults() Simulation {
	if s.Peers == 0 {
		s.Peers = DefaultSimulated
	}
	if s.Optimizer == nil {
		s.Optimizer = func() peer.Optimizer { return &peer.SGD{Momentum: peer.DefaultMomentum} }
	}
	if s.Exchange.Machine == nil {
		s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(c) }
	}
	if s.Exchange.Stall == 0 {
		s.Exchange.Stall = peer.DefaultStall
	}
	if s.Limit == 0 {
		s.Limit = DefaultLimit
	}
	s.World = s.World.withDefaults()
	s.Watch = s.Watch.withDefaults()
	return s
}

// target is the number of steps that are the work of so many peers.
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
