package fit

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/table"
)

// joinFlock is the joiner of a real peer: it waits for --min-peers members.
func joinFlock(o options, std cli.Streams) joiner {
	return func(ctx context.Context, tell func(report)) (table.Flock, func() (uint64, error), error) {
		log := o.NewLog(std.Err)
		bridged := p2pnet.BridgeLogs(log)
		p, err := startPeer(ctx, o, std)
		if err != nil {
			bridged()
			return nil, nil, err
		}
		leave := func() (uint64, error) {
			defer bridged()
			sent := p.Stats().Exchanges.BytesSent
			return sent, p.Close()
		}
		said := fmt.Sprintf("waiting for %s", cli.Plural(uint64(o.MinPeers), "peer"))
		if len(o.Join) == 0 {
			said += fmt.Sprintf("; others come with the same flags and --join %s", token.Of(o.Run, string(p.Self()), p.JoinAddresses()))
		}
		tell(report{Kind: reportStarted, Addresses: p.JoinAddresses(), Said: said})
		if err := gather(ctx, o, p); err != nil {
			_, _ = leave()
			return nil, nil, err
		}
		return p, leave, nil
	}
}

func startPeer(ctx context.Context, o options, std cli.Streams) (*peer.Peer, error) {
	log := o.NewLog(std.Err)
	key, err := o.Lasting(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	admission, err := o.Admission(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	sums := peer.Sums{Patience: o.MinPeersWait} // one may have to read far more than another
	if o.Part < 0 {
		sums.AtLeast = o.MinPeers/2 + 1 // of a divided network, one side goes on
	}
	p, err := peer.Start(ctx, peer.Config{
		Run: o.Run, Join: o.Join, Log: log, Sums: sums,
		Network: peer.Network{Key: key, Listen: o.Listen, KnownPeers: o.KnownPeers(), Admission: admission},
	})
	if err != nil {
		if remedy := settings.Remedy(err); remedy != "" {
			err = fmt.Errorf("%w: %s", err, remedy)
		}
		return nil, cli.ConfigOf(err, settings.Unusable...)
	}
	return p, nil
}

// gather waits for the others.
func gather(ctx context.Context, o options, p *peer.Peer) error {
	bounded, cancel := context.WithTimeout(ctx, o.MinPeersWait)
	defer cancel()
	err := p.WaitMembers(bounded, o.MinPeers)
	switch {
	case err == nil || ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("only %d of %d peers have come within %s: start the others, or give --min-peers-wait more time", p.Stats().Members, o.MinPeers, o.MinPeersWait)
	}
	return err
}
