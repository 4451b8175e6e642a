package p2pnet

import (
	"context"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// relayAccess has a relay serve members only: libp2p's protocol of relays has no place to
// show that one takes part in a run.
type relayAccess struct{ member func(seam.PeerID) error }

var _ relay.ACLFilter = relayAccess{}

// AllowReserve implements relay.ACLFilter.
func (r relayAccess) AllowReserve(id peer.ID, _ ma.Multiaddr) bool {
	return r.member(seam.PeerID(id.String())) == nil
}

// AllowConnect implements relay.ACLFilter.
func (r relayAccess) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	return r.AllowReserve(from, nil) && r.AllowReserve(to, nil)
}

// introduced tells whether an attempt failed because a relay did not know this process,
// and one does now.
func (t *Transport) introduced(ctx context.Context, err error, relays ...peer.ID) (done bool) {
	if err == nil || t.config.Introduce == nil || !strings.Contains(err.Error(), pb.Status_PERMISSION_DENIED.String()) {
		return false // libp2p's own error has no type
	}
	slices.Sort(relays)
	for _, id := range slices.Compact(relays) {
		if err := t.config.Introduce(ctx, seam.PeerID(id.String())); err != nil {
			t.log.Debug("a relay is not to be convinced that this process takes part", zap.Stringer("relay", id), zap.Error(err))
			continue
		}
		done = true
	}
	return done
}

// relaysOf are the relays that addresses lead through.
func relaysOf(addresses []ma.Multiaddr) (relays []peer.ID) {
	for _, a := range addresses {
		if !isCircuit(a) {
			continue
		}
		if text, err := a.ValueForProtocol(ma.P_P2P); err == nil {
			if id, err := peer.Decode(text); err == nil {
				relays = append(relays, id)
			}
		}
	}
	return relays
}
