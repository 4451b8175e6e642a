package p2pnet

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
)

// watchReachable tells Config.Reachable what libp2p's AutoNAT finds out, until the
// transport ends: it asks relays, which serve for that, to dial this process.
func (t *Transport) watchReachable() error {
	if t.config.Reachable == nil {
		return nil
	}
	found, err := t.host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		return fmt.Errorf("watching whether others can dial this process: %w", err)
	}
	t.relaying.keepers.Go(func() {
		defer found.Close()
		for {
			select {
			case <-t.ending.Done():
				return
			case e, ok := <-found.Out():
				if !ok {
					return
				}
				if changed, ok := e.(event.EvtLocalReachabilityChanged); ok {
					t.tellReachable(changed.Reachability)
				}
			}
		}
	})
	return nil
}

// tellReachable tells what was found, but for what a connection contradicts: a single
// relay that lies, or has a bad link, must not keep everybody from being dialled.
func (t *Transport) tellReachable(found network.Reachability) {
	switch {
	case found == network.ReachabilityPublic:
		t.config.Reachable(true)
	case found != network.ReachabilityPrivate:
	case slices.ContainsFunc(t.swarm.Conns(), dialledFromAfar):
		t.log.Info("a relay could not dial this process, but others have; check the firewall", zap.Int("connections", len(t.swarm.Conns())))
	default:
		t.config.Reachable(false)
	}
}

// dialledFromAfar tells whether the other end has dialled a connection, directly and not
// from a network of private addresses, which is behind the same NAT.
func dialledFromAfar(c network.Conn) bool {
	remote := c.RemoteMultiaddr()
	return c.Stat().Direction == network.DirInbound && !isCircuit(remote) && manet.IsPublicAddr(remote)
}
