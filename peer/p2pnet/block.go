package p2pnet

import (
	"net/netip"

	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/seam"
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
	return blockOf(address).String()
}

// blockOf is the neighbourhood of an address that one hand may hold, and homeOf one place
// where peers live.
func blockOf(ip netip.Addr) netip.Prefix { return prefixOf(ip, blockBits4, blockBits6) }
func homeOf(ip netip.Addr) netip.Prefix  { return prefixOf(ip, homeBits4, homeBits6) }

// prefixOf is the neighbourhood of an address, of so many bits.
func prefixOf(ip netip.Addr, bits4, bits6 int) netip.Prefix {
	bits := bits6
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = bits4
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address at all
	}
	return p
}
