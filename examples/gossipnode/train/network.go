package train

import (
	"crypto/ed25519"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// networkOf turns settings into the configuration of a peer's network.
func networkOf(s settings.Settings, key ed25519.PrivateKey, admission peer.Admission, changed func(string, []control.Change), log *zap.Logger) peer.Network {
	n := peer.Network{
		Run: s.Run, Join: s.Join, Log: log, Identity: key, Listen: s.Listen, KnownPeers: s.KnownPeers(), Admission: admission,
		Reach: s.Reach(), Relay: s.Relays(), Uplink: s.Uplink(), Site: s.Site, Carrier: s.Carrier(), GossipKeys: s.GossipKeys(),
		Control: control.Config{
			Operator: transport.PeerID(s.Operator), Name: s.PeerName(), Digests: s.DigestEvery(), Changed: changed,
		},
	}
	if s.Strategy == settings.StrategyAlone {
		n.Join, n.Listen = nil, []string{settings.Loopback}
	}
	return n
}
