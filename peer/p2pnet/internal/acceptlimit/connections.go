package acceptlimit

import (
	"io"
	"net/netip"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// caller is a connection that another process has begun. libp2p calls its methods as
// the connection's resource scope, from begin to end.
type caller struct {
	network.ConnManagementScope
	limiter *Limiter
	conn    io.Closer
	id      peer.ID // empty until the other end has proved it

	home, block netip.Prefix
	// expected: it comes from where a member has connected from, and does not give way.
	expected bool
}

// SetPeer implements network.ConnManagementScope: the other end has proven its key.
func (c *caller) SetPeer(id peer.ID) error {
	c.limiter.prove(c, id)
	return c.ConnManagementScope.SetPeer(id)
}

// Done implements network.ConnManagementScope: the connection has ended.
func (c *caller) Done() {
	c.limiter.leave(c)
	c.ConnManagementScope.Done()
}

// connections holds callers in the order in which they came, up to a bound.
type connections struct {
	places  int
	callers []*caller
}

func (w *connections) remove(c *caller) {
	if at := slices.Index(w.callers, c); at >= 0 {
		w.callers = slices.Delete(w.callers, at, at+1)
	}
}

// expects tells whether a place is kept for one more caller from a member's home.
func (w *connections) expects(home netip.Prefix) bool {
	all, same := 0, 0
	for _, c := range w.callers {
		if c.expected {
			all++
		}
		if c.expected && c.home == home {
			same++
		}
	}
	return all < w.places/2 && same < expectedPerHome
}

// evict removes one caller if there are too many, and returns it with the number of
// callers in its block. It never removes callers from a member's home, which are few.
func (w *connections) evict() (out *caller, held int) {
	if len(w.callers) <= w.places {
		return nil, 0
	}
	blocks, homes := make(map[netip.Prefix]int), make(map[netip.Prefix]int)
	for _, c := range w.callers {
		if !c.expected {
			blocks[c.block]++
			homes[c.home]++
		}
	}
	for _, c := range w.callers {
		more := out == nil || blocks[c.block] > held || blocks[c.block] == held && homes[c.home] > homes[out.home]
		if !c.expected && more {
			out, held = c, blocks[c.block]
		}
	}
	w.remove(out)
	return out, held
}

// BlockOf is the block of addresses around ip that one owner may hold; homeOf is the
// smaller block that belongs to one site.
func BlockOf(ip netip.Addr) netip.Prefix { return prefixOf(ip, blockBits4, blockBits6) }
func homeOf(ip netip.Addr) netip.Prefix  { return prefixOf(ip, HomeBits4, HomeBits6) }

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
