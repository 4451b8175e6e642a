package p2pnet

import (
	"io"
	"net/netip"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/tcpreuse"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
)

// door holds the connections that others have begun and not yet shown a key on. There
// are places for a large flock that starts together; once they are taken, whoever comes
// is let in, and one that has waited gives way: of the block of addresses that holds
// most, of the address there that holds most, the oldest. So idle connections, however
// many, make room at the cost of their own neighbourhood, and a handshake has all the
// time of libp2p while there is room, and less the more of its neighbours come after it.
type door struct {
	places int
	// member tells whether a peer is one whose addresses are known.
	member func(peer.ID) bool
	log    *zap.Logger

	mu sync.Mutex
	// waiting are in the order in which they came.
	waiting []*caller
	// homes are where members have connected from, the latest ones.
	homes *lru.Cache[netip.Prefix, struct{}]
}

func newDoor(member func(peer.ID) bool, log *zap.Logger) *door {
	homes, err := lru.New[netip.Prefix, struct{}](maxHomes)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &door{places: maxHandshakes, member: member, log: log, homes: homes}
}

// caller is an inbound connection, as libp2p accounts for it from its begin to its end.
type caller struct {
	network.ConnManagementScope
	door *door
	conn io.Closer

	home, block netip.Prefix
	// expected: it comes from where a member has connected from, and does not give way.
	expected bool
	id       peer.ID // once it is proven
}

// enter takes a place for a connection, and closes the one that gives way for it.
func (d *door) enter(conn io.Closer, scope network.ConnManagementScope, from netip.Addr) *caller {
	c := &caller{ConnManagementScope: scope, door: d, conn: conn, home: prefixOf(from, homeBits4, homeBits6), block: prefixOf(from, blockBits4, blockBits6)}
	d.mu.Lock()
	c.expected = d.expects(c.home)
	d.waiting = append(d.waiting, c)
	var out *caller
	held := 0
	if len(d.waiting) > d.places {
		out, held = d.choose()
		d.remove(out)
	}
	d.mu.Unlock()
	if out != nil {
		d.log.Warn("closed a connection on which no key was shown, for another that came: somebody holds many of them open. "+
			"Peers of other addresses still get in; if it goes on, keep that block out by a firewall",
			zap.Stringer("block", out.block), zap.Int("held", held), zap.Int("places", d.places))
		_ = out.conn.Close() // its handshake fails, and tells libp2p that it has ended
	}
	return c
}

// expects tells whether one more connection from a home is kept a place for.
func (d *door) expects(home netip.Prefix) bool {
	if !d.homes.Contains(home) {
		return false
	}
	all, same := 0, 0
	for _, w := range d.waiting {
		if w.expected {
			all++
			if w.home == home {
				same++
			}
		}
	}
	return all < d.places/2 && same < expectedPerHome
}

// choose returns the caller that gives way, and how many its block holds. There is one:
// half of the places and more are of callers that nobody expected.
func (d *door) choose() (out *caller, held int) {
	blocks, homes := make(map[netip.Prefix]int), make(map[netip.Prefix]int)
	for _, w := range d.waiting {
		if !w.expected {
			blocks[w.block]++
			homes[w.home]++
		}
	}
	for _, w := range d.waiting {
		more := out == nil || blocks[w.block] > held || blocks[w.block] == held && homes[w.home] > homes[out.home]
		if !w.expected && more {
			out, held = w, blocks[w.block]
		}
	}
	return out, held
}

func (d *door) remove(c *caller) {
	if at := slices.Index(d.waiting, c); at >= 0 {
		d.waiting = slices.Delete(d.waiting, at, at+1)
	}
}

// leave gives back the place of a caller, and remembers where a member is at home.
func (d *door) leave(c *caller, id peer.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(c)
	if id != "" {
		c.id = id
	}
	if c.id != "" && d.member(c.id) {
		d.homes.Add(c.home, struct{}{})
	}
}

// SetPeer implements network.ConnManagementScope: the other end has proven its key.
func (c *caller) SetPeer(id peer.ID) error {
	c.door.leave(c, id)
	return c.ConnManagementScope.SetPeer(id)
}

// Done implements network.ConnManagementScope: the connection has ended. Who has become
// a member meanwhile is expected when it comes again.
func (c *caller) Done() {
	c.door.leave(c, "")
	c.ConnManagementScope.Done()
}

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

// newTCP has the form of the constructors that libp2p takes: TCP whose listeners have
// this door.
func (d *door) newTCP(options ...tcp.Option) func(transport.Upgrader, network.ResourceManager, *tcpreuse.ConnMgr) (*tcp.TcpTransport, error) {
	return func(upgrader transport.Upgrader, resources network.ResourceManager, shared *tcpreuse.ConnMgr) (*tcp.TcpTransport, error) {
		return tcp.NewTCPTransport(doored{upgrader, d}, resources, shared, options...)
	}
}

// doored is libp2p's upgrader of connections, behind a door.
type doored struct {
	transport.Upgrader
	door *door
}

func (u doored) GateMaListener(l manet.Listener) transport.GatedMaListener {
	return guarded{u.Upgrader.GateMaListener(l), u.door}
}

// guarded is a listener whose connections have passed the limits of each address.
type guarded struct {
	transport.GatedMaListener
	door *door
}

func (l guarded) Accept() (manet.Conn, network.ConnManagementScope, error) {
	conn, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	var from netip.Addr
	if ip, err := manet.ToIP(conn.RemoteMultiaddr()); err == nil {
		from, _ = netip.AddrFromSlice(ip)
	}
	return conn, l.door.enter(conn, scope, from), nil
}
