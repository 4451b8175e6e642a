package p2pnet

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// gater refuses identities whose signatures this package cannot check, and peers that are
// not admitted. It refuses the latter only when the connection is complete: before that,
// the other end could not receive the reason.
type gater struct {
	admit func(transport.PeerID) error
	log   *zap.Logger // for connections that others dial; nil if nobody can dial this process
}

func (gater) InterceptPeerDial(id peer.ID) bool            { return isEd25519(id) }
func (gater) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (gater) InterceptAccept(network.ConnMultiaddrs) bool  { return true }

func (gater) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return isEd25519(id)
}

func (g gater) InterceptUpgraded(conn network.Conn) (bool, control.DisconnectReason) {
	err := g.admit(transport.PeerID(conn.RemotePeer().String()))
	if err != nil && g.log != nil && conn.Stat().Direction == network.DirInbound {
		g.log.Warn("refused a connection of a peer that is not admitted", zap.Stringer("peer", conn.RemotePeer()),
			zap.Stringer("address", conn.RemoteMultiaddr()), zap.Error(err))
	}
	return err == nil, 0
}

// CheckPeer returns an error if a text cannot be the id of a peer.
func CheckPeer(id transport.PeerID) error {
	_, err := parsePeer(id)
	return err
}

// gated tells whether the other end has closed a connection because it does not
// admit this peer.
func gated(err error) bool {
	end, ok := errors.AsType[*network.ConnError](err)
	return ok && end.Remote && end.ErrorCode == network.ConnGated
}

// notConnected turns the failure of a connection into its cause: a refusal,
// another identity, or else transport.ErrUnreachable.
func notConnected(err error) error {
	if mismatch, ok := errors.AsType[sec.ErrPeerIDMismatch](err); ok {
		wanted, is := mismatch.Expected.String(), mismatch.Actual.String()
		return &WrongIdentityError{Wanted: transport.PeerID(wanted), Proved: transport.PeerID(is)}
	}
	if gated(err) {
		return fmt.Errorf("%w: %w", transport.ErrNotAdmitted, brief{err})
	}
	return unreachable(err)
}
