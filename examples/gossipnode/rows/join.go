package rows

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/topology"
)

// Joining joins other members to compute sums.
type Joining struct {
	settings.Settings
	Network peer.Network
	// Together tells that all members are on this machine, so the network cannot be divided.
	Together bool
	// Started is called when other members can join.
	Started func(*peer.Node)
}

// Join waits for --min-peers members. The caller must close the node.
func (j Joining) Join(ctx context.Context) (*peer.Node, error) {
	network := j.Network
	network.Sums.Topology, _ = topology.ParseShape(j.Topology) // faults has checked it; none is by halving and doubling
	network.Sums.Timeout = j.MinPeersWait                      // one member may have far more to read than another
	if j.MinPeers < 3 {
		network.Sums.Masked = new(false) // with two members masks hide nothing: each sees the other's numbers in the sum
	}
	if !j.Together {
		network.Sums.AtLeast = j.MinPeers/2 + 1 // if the network is divided, only one part continues
	}
	p, err := peer.Join(ctx, network)
	if err != nil {
		return nil, cli.ConfigOf(settings.Remedied(err), settings.Unusable...)
	}
	j.Started(p)
	if err := j.gather(ctx, p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// gather waits for the others.
func (j Joining) gather(ctx context.Context, p *peer.Node) error {
	bounded, cancel := context.WithTimeout(ctx, j.MinPeersWait)
	defer cancel()
	err := p.WaitMembers(bounded, j.MinPeers)
	switch {
	case err == nil || ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("only %d of %d peers have come within %s: start the others, or give --min-peers-wait more time", p.Stats().Members, j.MinPeers, j.MinPeersWait)
	}
	return err
}
