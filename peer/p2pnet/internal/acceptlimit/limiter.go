// Package acceptlimit bounds the connections that others begin and that are no member's.
package acceptlimit

import (
	"io"
	"net/netip"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
)

const (
	// HomeBits are those of an address that count as one place where peers live, a NAT's
	// or a machine's, and blockBits those of a neighbourhood that one hand may hold.
	HomeBits4, HomeBits6   = 32, 56
	blockBits4, blockBits6 = 24, 48
	// maxHomes bounds the homes of members that are remembered, and expectedPerHome the
	// handshakes of each that are kept a place for.
	maxHomes        = 1024
	expectedPerHome = 16
)

// Limiter bounds the connections that others have begun and that are no member's: those on
// which no key was shown yet, and those of strangers. There are places for a large flock
// that starts together; once they are taken, whoever comes is let in, and one that has
// waited gives way: of the block of addresses that holds most, of the address there that
// holds most, the oldest. So idle connections, however many, make room at the cost of
// their own neighbourhood, and a handshake has all the time of libp2p while there is
// room, and less the more of its neighbours come after it.
type Limiter struct {
	// member tells whether a peer is one whose addresses are known.
	member func(peer.ID) bool
	// gaveWay is told of each connection that gives way.
	gaveWay func()
	log     *zap.Logger

	mu                sync.Mutex
	silent, strangers connections
	// homes are where members have connected from, the latest ones.
	homes *lru.Cache[netip.Prefix, struct{}]
}

// New makes a door with so many places for connections on which no key was shown yet, and
// for those of strangers. Member tells whether a peer is one whose addresses are known;
// gaveWay is told of each connection that gives way.
func New(silent, strangers int, member func(peer.ID) bool, gaveWay func(), log *zap.Logger) *Limiter {
	homes, _ := lru.New[netip.Prefix, struct{}](maxHomes) // fails for sizes below one only
	return &Limiter{
		member: member, gaveWay: gaveWay, log: log, homes: homes,
		silent: connections{places: silent}, strangers: connections{places: strangers},
	}
}

// enter takes a place for a connection, on which no key was shown yet.
func (d *Limiter) enter(conn io.Closer, scope network.ConnManagementScope, from netip.Addr) *caller {
	c := &caller{ConnManagementScope: scope, limiter: d, conn: conn, home: homeOf(from), block: BlockOf(from)}
	d.mu.Lock()
	c.expected = d.homes.Contains(c.home) && d.silent.expects(c.home)
	d.silent.callers = append(d.silent.callers, c)
	out, held := d.silent.evict()
	d.mu.Unlock()
	d.close(out, held, "closed a connection on which no key was shown, for another that came: "+manyHeld)
	return c
}

// prove notes whose a connection is. Strangers may become members meanwhile.
func (d *Limiter) prove(c *caller, id peer.ID) {
	d.mu.Lock()
	d.silent.remove(c)
	c.id, c.expected = id, false
	d.strangers.callers = append(d.strangers.callers, c)
	if len(d.strangers.callers) > d.strangers.places {
		d.strangers.callers = slices.DeleteFunc(d.strangers.callers, func(c *caller) bool { return d.member(c.id) })
	}
	out, held := d.strangers.evict()
	d.welcome(c)
	d.mu.Unlock()
	d.close(out, held, "closed the connection of a peer that is no member, for another that came: "+manyHeld)
}

// manyHeld is the log message about a flood.
const manyHeld = "somebody holds many of them open. Peers of other addresses still get in; if it goes on, keep that block out by a firewall"

// close ends the connection that gives way, if one does; libp2p hears of it as of any
// other end.
func (d *Limiter) close(out *caller, held int, message string) {
	if out == nil {
		return
	}
	d.gaveWay()
	d.log.Warn(message, zap.Stringer("block", out.block), zap.Int("held", held))
	_ = out.conn.Close()
}

// leave gives back the place of a connection. Who has become a member while it lasted
// is expected when it comes again.
func (d *Limiter) leave(c *caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent.remove(c)
	d.strangers.remove(c)
	d.welcome(c)
}

// welcome remembers where a member is at home.
func (d *Limiter) welcome(c *caller) {
	if c.id != "" && d.member(c.id) {
		d.homes.Add(c.home, struct{}{})
	}
}

// Guard puts the door before the listeners whose connections an upgrader secures.
func (d *Limiter) Guard(u transport.Upgrader) transport.Upgrader { return limited{u, d} }

// limited is libp2p's upgrader of connections, behind a door.
type limited struct {
	transport.Upgrader
	limiter *Limiter
}

func (u limited) GateMaListener(l manet.Listener) transport.GatedMaListener {
	return guarded{u.Upgrader.GateMaListener(l), u.limiter}
}

// guarded is a listener whose connections have passed the limits of each address.
type guarded struct {
	transport.GatedMaListener
	limiter *Limiter
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
	return conn, l.limiter.enter(conn, scope, from), nil
}
