package peer

import (
	"context"
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// probeTimeout bounds a probe.
const probeTimeout = 2 * time.Second

// What gossip says of a member is a hint: a probe over the transport decides.

// gone tells whether a member does not answer at any address.
func (p *Peer) gone(member seam.PeerID) bool {
	ctx, cancel := context.WithTimeout(p.exchanges, probeTimeout)
	defer cancel()
	stream, err := p.transport.Open(ctx, member, seam.ProtocolHello, p.config.Run)
	if err != nil {
		return errors.Is(err, seam.ErrUnreachable)
	}
	stream.Reset()
	return false
}

// confirm probes a member that gossip calls dead. If it is, an exchange with it is
// broken off at once, before it stalls.
func (p *Peer) confirm(member seam.PeerID) {
	if p.gone(member) {
		p.notify(notice{event: averaging.Event{Kind: averaging.PeerLost, Peer: topology.PeerID(member)}})
	}
}

// allGone tells whether none of the members that are still at work, as far as
// gossip knows, answers any more.
func (p *Peer) allGone(working []seam.PeerID) bool {
	for _, member := range working {
		if !p.gone(member) {
			return false
		}
	}
	return true
}
