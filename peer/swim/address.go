package swim

import (
	"crypto/sha256"
	"net"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// advertisePort stands where memberlist wants a port.
const advertisePort = 1

// advertiseIP is the IP address under which memberlist knows a peer: it insists on one. It
// is a unique local address (RFC 4193) that follows from the peer's id, so it survives a
// restart, and a peer cannot claim that of another; nothing is ever sent to it.
func advertiseIP(peer transport.PeerID) net.IP {
	sum := sha256.Sum256([]byte("murmuration swim address\x00" + string(peer)))
	ip := net.IP(sum[:net.IPv6len])
	ip[0] = 0xfd
	return ip
}

// joinAddress is what memberlist's Join takes to reach a peer: its name, and an
// address that needs no resolver.
func joinAddress(peer transport.PeerID) string {
	return string(peer) + "/" + net.JoinHostPort(advertiseIP(peer).String(), strconv.Itoa(advertisePort))
}

// validPeer tells whether an id can be the name of a node.
func validPeer(peer transport.PeerID) bool {
	return peer != "" && len(peer) <= maxPeerID && !strings.ContainsAny(string(peer), "/ \x00")
}

// peerAddr is the net.Addr of a peer, for memberlist's log lines.
type peerAddr transport.PeerID

func (a peerAddr) Network() string { return "swim" }

// String implements net.Addr, in a form that net.SplitHostPort takes.
func (a peerAddr) String() string { return string(a) + ":" + strconv.Itoa(advertisePort) }
