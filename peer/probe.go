package peer

import (
	"context"
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// probeTimeout bounds a probe.
const probeTimeout = 2 * time.Second

// gone tells whether a member does not answer a hello at any address, or its process
// takes no part in the run any more. A stream that can be opened says nothing: a
// frozen process accepts it.
func (p *Peer) gone(member seam.PeerID) bool {
	ctx, cancel := context.WithTimeout(p.exchanges, probeTimeout)
	defer cancel()
	_, err := p.hello(ctx, member)
	var answer *refusal
	var refused *RefusedError
	switch {
	case err == nil, errors.As(err, &answer), p.exchanges.Err() != nil:
		return false
	case errors.As(err, &refused):
		return refused.reason == wire.ReasonRun
	}
	return true
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
