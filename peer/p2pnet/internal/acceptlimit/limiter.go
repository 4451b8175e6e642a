// Package acceptlimit bounds the connections that others begin and that are no member's.
package acceptlimit

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
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
// that starts together. When all are taken, a new connection is let in, and the limiter
// closes one that waits: it takes the block of addresses with most connections, there the
// address with most, and of those the oldest. So a flood of idle connections displaces
// only connections of its own block. While there is room a handshake has all the time that
// libp2p gives; without room, it has less the more connections come from its block.
type Limiter struct {
	// member tells whether a peer is one whose addresses are known.
	member func(peer.ID) bool
	// gaveWay is told of each connection that gives way.
	gaveWay func()
	log     *zap.Logger
	failed  rate.Sometimes // tells of errors of listeners

	mu                sync.Mutex
	silent, strangers connections
	// homes are where members have connected from, the latest ones.
	homes *lru.Cache[netip.Prefix, struct{}]
}

// New makes a Limiter with places for silent connections, on which no key was shown yet,
// and for those of strangers. Member tells whether a peer's addresses are known; the
// limiter calls gaveWay for each connection that it closes to make room.
func New(silent, strangers int, member func(peer.ID) bool, gaveWay func(), log *zap.Logger) *Limiter {
	homes, _ := lru.New[netip.Prefix, struct{}](maxHomes) // fails for sizes below one only
	return &Limiter{
		member: member, gaveWay: gaveWay, log: log, homes: homes, failed: rate.Sometimes{Interval: time.Minute},
		silent: connections{places: silent}, strangers: connections{places: strangers},
	}
}

// enter takes a place for a new connection, on which no key was shown yet.
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

// prove notes which peer a connection belongs to. A stranger may become a member while it is connected.
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

// close closes the connection that evict has removed, if any; to libp2p it looks like
// any other end.
func (d *Limiter) close(out *caller, held int, message string) {
	if out == nil {
		return
	}
	d.gaveWay()
	d.log.Warn(message, zap.Stringer("block", out.block), zap.Int("held", held))
	_ = out.conn.Close()
}

// leave frees the place of a connection. If the peer became a member meanwhile, its
// home is remembered, and a place is kept for its next connection.
func (d *Limiter) leave(c *caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent.remove(c)
	d.strangers.remove(c)
	d.welcome(c)
}

// welcome remembers the home block of a member.
func (d *Limiter) welcome(c *caller) {
	if c.id != "" && d.member(c.id) {
		d.homes.Add(c.home, struct{}{})
	}
}

// Guard puts the limiter in front of the listeners whose connections an upgrader secures.
func (d *Limiter) Guard(u transport.Upgrader) transport.Upgrader { return limited{u, d} }

// limited is libp2p's upgrader of connections, behind a Limiter.
type limited struct {
	transport.Upgrader
	limiter *Limiter
}

func (u limited) GateMaListener(l manet.Listener) transport.GatedMaListener {
	return guarded{u.Upgrader.GateMaListener(l), u.limiter}
}

// passing is an error after which a listener goes on. On Linux accept(2) also returns what the network did to a
// connection that nobody has seen yet (EPROTO, EHOSTUNREACH), and a want of memory or a firewall's refusal. Go calls
// few of these temporary, and libp2p would close the listener for good: nobody could reach this process any more.
type passing struct{ error }

func (e passing) Unwrap() error { return e.error }

// Temporary is what libp2p asks: it waits for up to a second, and accepts again.
func (passing) Temporary() bool { return true }

// guarded is a listener whose connections are within the limits for each address.
type guarded struct {
	transport.GatedMaListener
	limiter *Limiter
}

func (l guarded) Accept() (manet.Conn, network.ConnManagementScope, error) {
	conn, scope, err := l.GatedMaListener.Accept()
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil, nil, err
	case err != nil:
		l.limiter.failed.Do(func() {
			l.limiter.log.Warn("a connection could not be accepted; trying further. If it goes on, raise the limit of open files (ulimit -n), and look at memory and firewall", zap.Error(err))
		})
		return nil, nil, passing{err}
	}
	var from netip.Addr
	if ip, err := manet.ToIP(conn.RemoteMultiaddr()); err == nil {
		from, _ = netip.AddrFromSlice(ip)
	}
	return conn, l.limiter.enter(conn, scope, from), nil
}
