package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Config sets up a peer. Run and Params are required; the zero values of the others are useful.
// All peers of a run must have the same run name, the same layout and the same initial values.
type Config struct {
	// Run is Network.Run, Join Network.Join, and Params Training.Params: each may be given in either place.
	Run    string
	Join   []string
	Params *tensor.Params
	// Network says to which run the peer belongs, and how it and others reach each other.
	Network Network
	// Training says what the peer trains, and how.
	Training Training
}

// parts are the configurations of the node and its trainer. Fields of Config itself take precedence.
func (c Config) parts() (Network, Training) {
	c.Network.Run = cmp.Or(c.Run, c.Network.Run)
	c.Training.Params = cmp.Or(c.Params, c.Training.Params)
	if len(c.Join) > 0 {
		c.Network.Join = c.Join
	}
	return c.Network, c.Training
}

// Peer is a node and its trainer in one, for a service that trains from beginning to end. Step, Apply
// and Trade belong to one trainer goroutine; every other method is safe for concurrent use.
type Peer struct {
	*Node
	*Trainer
}

// Start is Join and Node.Train in one: the peer is announced from the beginning as one that trains. Start does not
// wait for other members. The context covers the start only. Start reports all faults of the configuration at once.
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
		return nil, fmt.Errorf("starting a peer of run %q: %w", network.Run, err)
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
	close(t.begun) // the caller cannot close it yet
	t.settle()
	n.loop.take(t.driver)
	n.arrival.Brings(t.joiner)
	if err := n.begin(t); err != nil {
		return nil, err
	}
	return &Peer{n, t}, nil
}

// Close leaves the run: Trainer.Close, and then Node.Close. It is idempotent.
func (p *Peer) Close() error { return p.Node.Close() }

// WireVersion is the version of the frames that peers speak. A peer with another version is refused, with that
// reason.
const WireVersion = wire.Version
