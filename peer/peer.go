package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// Config sets up a peer. Run and Params are required; the zero values of the others are useful. All peers of a run must have the same run name, the same
// layout and the same initial values.
type Config struct {
	// Run names what is trained together: 1 to 64 bytes of text.
	Run string
	// Description says what the run is, beside its name and its layout: see package
	// description. A peer that joins is compared with what the members say. Where models or
	// work would suffer, Step fails with a *description.MismatchError; other differences are
	// logged. Default: whatever the members say, unchecked.
	Description description.Description
	// Params is the model with its initial values. The peer takes the vector
	// over: read it with Snapshot from now on.
	Params *tensor.Params
	// Join lists addresses of members: full multiaddrs with a peer id, or
	// host:port. Empty for the first peer of a run. The peer keeps trying those
	// that do not answer; one that nobody could dial is an error of Start.
	Join []string
	// Network says how other peers are reached.
	Network Network
	// Checkpoint tells what lies behind Params if they come from a checkpoint of this
	// run. Default: nothing, they are the run's initial values.
	Checkpoint Checkpoint
	// Optimizer turns gradients into steps. Default: SGD with momentum 0.9. If it is an
	// optim.Validator, its faults are those of Start.
	Optimizer optim.Optimizer
	// Schedule is the learning rate over the progress of the whole flock.
	Schedule optim.Schedule
	// Exchange says how often and how models are averaged.
	Exchange Exchange
	// Work says when the run is over. Default: never.
	Work Work
	// Sums says with whom Sum, Max and Gather sum.
	Sums Sums
	// Hooks are called when something of interest has happened.
	Hooks Hooks
	// Log receives what an operator should know. Default: nothing is logged.
	Log *zap.Logger
}

// parts are what a node and its trainer are made of.
func (c Config) parts() (Network, Training) {
	n := c.Network
	n.Run, n.Description, n.Join, n.Sums, n.Log = c.Run, c.Description, c.Join, c.Sums, c.Log
	n.Stall = cmp.Or(n.Stall, c.Exchange.Stall)
	return n, Training{
		Params: c.Params, Checkpoint: c.Checkpoint, Optimizer: c.Optimizer, Schedule: c.Schedule,
		Exchange: c.Exchange, Work: c.Work, Hooks: c.Hooks,
	}
}

// Peer is a node and its trainer in one: what a service embeds that trains from beginning to end.
// Step, Apply and Trade belong to one trainer goroutine; every other method is safe for concurrent use.
type Peer struct {
	*Node
	*Trainer
}

// Start is Join and Node.Train in one: a peer that is known from the first to train. It waits for nobody.
// The context covers starting only. It reports all faults of the configuration at once.
func Start(ctx context.Context, config Config) (*Peer, error) {
	network, with := config.parts()
	if err := errors.Join(append(network.faults(), with.faults()...)...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting a peer: %w", err)
	}
	p, err := start(network.withDefaults(), with.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("starting a peer of run %q: %w", config.Run, err)
	}
	return p, nil
}

func start(network Network, with Training) (*Peer, error) {
	n, err := newNode(network)
	if err != nil {
		return nil, err
	}
	t, err := newTrainer(n, with)
	if err != nil {
		_ = n.dismantle()
		return nil, err
	}
	n.trainer.Store(t)
	n.loop.take(t)
	n.arrival.Brings(t.newcomer)
	if err := n.begin(t); err != nil {
		return nil, err
	}
	return &Peer{n, t}, nil
}

// Close leaves the run: Trainer.Close, and then Node.Close. It is idempotent.
func (p *Peer) Close() error { return p.Node.Close() }

// WireVersion is the version of the frames that peers speak. Those of one run must have
// the same; a peer of another is refused, and says so.
const WireVersion = wire.Version
