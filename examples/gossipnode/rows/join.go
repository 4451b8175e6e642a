package rows

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
)

// Joining is a member that comes to sum with others.
type Joining struct {
	settings.Settings
	Key ed25519.PrivateKey
	// Description is what the run is for, if members compare that when they meet.
	Description description.Description
	// Together: all are on this machine, so no divided network is to be thought of.
	Together bool
	Log      *zap.Logger
	// Started is called when others can join.
	Started func(*peer.Node)
}

// Join waits for --min-peers members. The node is to be closed.
func (j Joining) Join(ctx context.Context) (*peer.Node, error) {
	admission, err := j.Admission(j.Log)
	if err != nil {
		return nil, cli.Config(err)
	}
	sums := peer.Sums{Patience: j.MinPeersWait} // one may have to read far more than another
	if !j.Together {
		sums.AtLeast = j.MinPeers/2 + 1 // of a divided network, one side goes on
	}
	p, err := peer.Join(ctx, peer.Network{
		Run: j.Run, Description: j.Description, Join: j.Settings.Join, Log: j.Log, Sums: sums,
		Key: j.Key, Listen: j.Listen, KnownPeers: j.KnownPeers(), Admission: admission,
	})
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
