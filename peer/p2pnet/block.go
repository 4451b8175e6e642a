package p2pnet

import (
	"net/netip"

	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// The bits of an address that tell one owner from another.
const (
	ownerBits4 = 24
	ownerBits6 = 48
)

var _ seam.Locator = (*Transport)(nil)

// Block implements seam.Locator.
func (t *Transport) Block(id seam.PeerID) string {
	parsed, err := parsePeer(id)
	if err != nil {
		return ""
	}
	conn := t.connected(parsed)
	if conn == nil || isCircuit(conn.RemoteMultiaddr()) {
		return ""
	}
	ip, err := manet.ToIP(conn.RemoteMultiaddr())
	if err != nil {
		return ""
	}
	address, _ := netip.AddrFromSlice(ip)
	return blockOf(address)
}

// blockOf is the block of an address.
func blockOf(address netip.Addr) string {
	address = address.Unmap()
	bits := ownerBits6
	if address.Is4() {
		bits = ownerBits4
	}
	block, err := address.Prefix(bits)
	if err != nil {
		return ""
	}
	return block.String()
}
