package rows

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
)

// Joining is a member that comes to sum with others.
type Joining struct {
	settings.Settings
	Network peer.Network
	// Together: all are on this machine, so no divided network is to be thought of.
	Together bool
	// Started is called when others can join.
	Started func(*peer.Node)
}

// Join waits for --min-peers members. The node is to be closed.
func (j Joining) Join(ctx context.Context) (*peer.Node, error) {
	network := j.Network
	network.Sums.Timeout = j.MinPeersWait // one may have to read far more than another
	if j.MinPeers < 3 {
		network.Sums.Masked = new(false) // masks hide nothing between two: each knows by the sum what the other brings
	}
	if !j.Together {
		network.Sums.AtLeast = j.MinPeers/2 + 1 // of a divided network, one side goes on
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
