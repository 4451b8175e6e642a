package peertest

import (
	"errors"
	"fmt"
	"time"
)

// Defaults of a World.
const (
	// DefaultStepTime is how long a gradient step takes.
	DefaultStepTime = 10 * time.Millisecond
	// DefaultJitter is by what share of it steps differ.
	DefaultJitter = 0.1
)

// World is what the peers of a simulation live in: how fast they compute, what joins
// them, and what becomes of both in time.
type World struct {
	// Compute says how long gradient steps take.
	Compute Compute
	// Links join the peers.
	Links Links
	// Changes happen at their times, in their order where times are equal.
	Changes []Change
	// Attacks are what some peers do to the others.
	Attacks []Attack
	// Replay takes compute times, links and changes from a recording instead. Links,
	// Changes and all of Compute but Samples are then unused: times are recorded as they
	// are for so many, and divided anew where an algorithm divides them.
	Replay *Recording
}

// Compute says how long the peers' gradient steps take.
type Compute struct {
	// Step is the time of one. Default: DefaultStepTime.
	Step time.Duration
	// Jitter is the share by which each differs from Step at most, either way, all
	// differences being equally likely. Default: DefaultJitter; below 0 is none.
	Jitter float64
	// Slow maps peers to the factor by which their steps take longer.
	Slow map[int]float64
	// Samples is how many samples the gradient has that takes Step: where an algorithm
	// divides them among the peers, the time of a step is in proportion. 0 is a time
	// that does not depend on them.
	Samples int
	// Phases are times in which a peer is slower by a factor more.
	Phases []Phase
}

// Phase is a time in which a peer's steps take longer by a factor. It counts for the
// steps that begin in it.
type Phase struct {
	Peer        int
	From, Until time.Duration
	Factor      float64
}

// Links join the peers. Each has a port, through which all passes that it sends and
// receives, and a link to every other peer.
type Links struct {
	// Port is the bytes a second each way of a peer's port. 0 is no bound.
	Port float64
	// Link is that of every pair of peers.
	Link Link
	// Slow maps peers to the factor by which their ports, and their links, carry less.
	Slow map[int]float64
	// Pairs are links of their own, by the two peers, the lower first.
	Pairs map[[2]int]Link
}

// Link joins two peers, alike both ways.
type Link struct {
	// Delay is the time that a byte is under way.
	Delay time.Duration
	// Bandwidth is the bytes a second of each way, beside what the ports let through.
	// 0 is no bound.
	Bandwidth float64
	// Loss is the probability that 1,460 bytes must be sent once more. As with TCP,
	// nothing is missing in the end: what follows waits.
	Loss float64
}

func (w World) withDefaults() World {
	if w.Compute.Step == 0 {
		w.Compute.Step = DefaultStepTime
	}
	switch {
	case w.Compute.Jitter == 0:
		w.Compute.Jitter = DefaultJitter
	case w.Compute.Jitter < 0:
		w.Compute.Jitter = 0
	}
	return w
}

func (w World) validate(peers int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for i, a := range w.Attacks {
		if err := a.validate(peers); err != nil {
			fault("Attacks: number %d: %w", i, err)
		}
	}
	if w.Replay != nil {
		if w.Replay.Peers != peers {
			fault("Replay is of %d peers, not of %d", w.Replay.Peers, peers)
		}
		return errors.Join(faults...)
	}
	return errors.Join(append(faults, w.Compute.validate(peers), w.Links.validate(peers), validateChanges(w.Changes, peers))...)
}

func (c Compute) validate(peers int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Step < 0 {
		fault("Compute.Step is %s: it may not be negative", c.Step)
	}
	if !(c.Jitter < 1) {
		fault("Compute.Jitter is %v: want a share below 1", c.Jitter)
	}
	for _, p := range c.Phases {
		if p.Peer < 0 || p.Peer >= peers || !(p.Factor > 0) || p.Until < p.From {
			fault("Compute.Phases has %+v: want a peer from 0 to %d, a factor above 0, and an end after its beginning", p, peers-1)
		}
	}
	return errors.Join(append(faults, validateSlow(c.Slow, peers))...)
}

func (l Links) validate(peers int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !(l.Port >= 0) {
		fault("Links.Port is %v bytes a second: want 0 for no bound, or more", l.Port)
	}
	if len(l.Slow) > 0 && l.Port == 0 && l.Link.Bandwidth == 0 {
		fault("Links.Slow has factors, and nothing bounds what peers send: give Port or Link.Bandwidth")
	}
	for pair := range l.Pairs {
		if pair[0] < 0 || pair[0] >= pair[1] || pair[1] >= peers {
			fault("Links.Pairs has %v: want two peers from 0 to %d, the lower first", pair, peers-1)
		}
	}
	return errors.Join(append(faults, validateSlow(l.Slow, peers))...)
}

// validateSlow tells what is wrong with factors by which peers are slower.
func validateSlow(slow map[int]float64, peers int) error {
	var faults []error
	for i, factor := range slow {
		if i < 0 || i >= peers || !(factor > 0) {
			faults = append(faults, fmt.Errorf("Slow has factor %v for peer %d: want one above 0 for a peer from 0 to %d", factor, i, peers-1))
		}
	}
	return errors.Join(faults...)
}

func validateChanges(changes []Change, peers int) error {
	var faults []error
	for i, c := range changes {
		if err := c.validate(peers); err != nil {
			faults = append(faults, fmt.Errorf("Changes: number %d, %s: %w", i, c.Kind, err))
		}
	}
	return errors.Join(faults...)
}
