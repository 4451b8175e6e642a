package p2pnet

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	manet "github.com/multiformats/go-multiaddr/net"
)

// judge decides on a finding, and gives the reason if it is not accepted: a single relay
// that lies or has a bad link must not make this process appear undiallable. And a relay
// inside this process's network cannot tell whether processes outside can dial it: in a
// flock on private addresses no relay can.
func judge(found network.Reachability, conns []network.Conn) (reachable bool, because string) {
	switch {
	case found != network.ReachabilityPrivate:
		return found == network.ReachabilityPublic, ""
	case slices.ContainsFunc(conns, dialledFromAfar):
		return true, "others have; check the firewall"
	case !slices.ContainsFunc(conns, afar):
		return true, "nobody is connected from outside the network of this process"
	}
	return false, ""
}

// afar tells whether a connection is direct and its other end has a public address.
func afar(c network.Conn) bool {
	remote := c.RemoteMultiaddr()
	return !isCircuit(remote) && manet.IsPublicAddr(remote)
}

// dialledFromAfar tells whether the other end has dialled a connection, directly and not
// from a network of private addresses, which is behind the same NAT.
func dialledFromAfar(c network.Conn) bool {
	return c.Stat().Direction == network.DirInbound && afar(c)
}

// certifiedStore is what libp2p's store of peers has to be.
type certifiedStore interface {
	peerstore.Peerstore
	peerstore.CertifiedAddrBook
}

// memberStore makes libp2p's AutoNAT ask only members whether they can dial this process:
// by itself AutoNAT asks any peer that speaks its protocol, and trusts the answer.
type memberStore struct {
	certifiedStore
	member func(peer.ID) bool
}

func newMemberStore(member func(peer.ID) bool) (memberStore, error) {
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return memberStore{}, fmt.Errorf("making the store of peers: %w", err)
	}
	return memberStore{store, member}, nil
}

func (s memberStore) SupportsProtocols(id peer.ID, protocols ...protocol.ID) ([]protocol.ID, error) {
	known, err := s.certifiedStore.SupportsProtocols(id, protocols...)
	if err == nil && slices.Contains(known, autonat.AutoNATProto) && !s.member(id) {
		known = slices.DeleteFunc(known, func(p protocol.ID) bool { return p == autonat.AutoNATProto })
	}
	return known, err
}
