package peer

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
)

// Reach says how others reach a peer, and what they may take of its process. All but the
// first two are for the default transport. The zero value is a peer that others can dial
// until it finds out otherwise: until a relay of its run, by libp2p's AutoNAT, has tried
// and failed, and nobody has dialled it from a public address. On a network of private
// addresses nobody tries.
type Reach struct {
	// Unreachable says that others cannot dial this peer: it is behind a NAT or a firewall
	// that lets nobody in. Such a peer is active: it begins its exchanges itself, and
	// others meet it through its relay, if it has one.
	Unreachable bool
	// Reachable says that others can dial it, whatever a relay finds.
	Reachable bool
	// Relay is for peers that others cannot dial but through a relay, and for those that
	// are one.
	Relay p2pnet.Relay
	// Limits bound the memory, connections and streams that others take.
	Limits p2pnet.Limits
}

// reachability is whether others cannot dial the local peer, as it was told or found out.
type reachability struct {
	told        bool
	unreachable atomic.Bool
}

func (r *reachability) begin(reach Reach) {
	r.told = reach.Unreachable || reach.Reachable
	r.unreachable.Store(reach.Unreachable)
}

// flag is what the record says of it.
func (r *reachability) flag() uint8 {
	if r.unreachable.Load() {
		return flagUnreachable
	}
	return 0
}

// foundReachable takes what the transport has found out, unless the peer was told.
func (p *Peer) foundReachable(reachable bool) {
	select {
	case <-p.serving: // the transport may be faster
	case <-p.running.Done():
		return
	}
	if p.reach.told || p.reach.unreachable.Swap(!reachable) == !reachable {
		return
	}
	if reachable {
		p.log.Info("others can dial this peer after all")
	} else {
		p.log.Info("others cannot dial this peer: it is active from now on, and begins its exchanges itself",
			zap.Bool("has_relay", len(p.config.Network.Reach.Relay.Via) > 0))
	}
	p.notify(notice{corrected: true})
}

// Gossip says how the members of a run find each other, for the default membership.
type Gossip struct {
	// Carrier is what news of members travels by. Default: streams, and datagrams in
	// a flock of more than swim.WideAbove, which spare a connection to every member.
	Carrier swim.Carrier
	// Keys encrypt it, with the first, and decrypt it with any: 16, 24 or 32 bytes
	// each, the same for all peers. Default: none; streams are encrypted in any case.
	// It is no admission: see Admission.Key for that.
	Keys [][]byte
}
