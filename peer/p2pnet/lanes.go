package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxLanes is how many lanes to all peers together are kept. Beyond it the one
// that has been idle longest gives way.
const maxLanes = 256

// ErrTooManyLanes: this process keeps as many lanes as it is willing to, and all
// of them carry streams.
var ErrTooManyLanes = fmt.Errorf("all of the %d lanes that a process may keep are in use", maxLanes)

// lanes are the further connections that this process has dialled.
//
// libp2p's swarm keeps to one connection when it dials a peer. So lane i is a swarm
// of its own, which keeps to one too: all that a connection needs (accounting,
// gating, serving streams that the other end opens on it) is the library's, and the
// host's transport and stream handler are shared. A host for each lane would
// announce itself to the peer as a process without addresses; a connection dialled
// outside any swarm would have to do all that by hand.
type lanes struct {
	*dialer

	mu     sync.Mutex
	closed bool
	swarms [1 + seam.MaxLane]*swarm.Swarm // made when first used; [0] is none
	table  map[laneKey]*lane
	silent silent
}

type laneKey struct {
	peer peer.ID
	lane int
}

// lane is one connection, or the wish for it.
type lane struct {
	key      laneKey
	users    int           // OpenLane calls under way; guarded by lanes.mu
	seen     time.Time     // when it was last in use; guarded by lanes.mu
	dialling chan struct{} // guards conn
	conn     network.Conn
}

// enter returns the lane of a key, which is kept until leave.
func (l *lanes) enter(key laneKey) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, seam.ErrClosed
	}
	found := l.table[key]
	if found == nil {
		if len(l.table) >= maxLanes && !l.evict() {
			return nil, ErrTooManyLanes
		}
		found = &lane{key: key, dialling: make(chan struct{}, 1)}
		l.table[key] = found
	}
	found.users++
	return found, nil
}

func (l *lanes) leave(one *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.users--
	one.seen = time.Now()
}

// inUse tells whether a lane carries a stream, in either direction, or is about to.
func (l *lanes) inUse(one *lane) bool {
	return one.users > 0 || (one.conn != nil && !one.conn.IsClosed() && one.conn.Stat().NumStreams > 0)
}

func (l *lanes) evict() bool {
	var oldest *lane
	for _, one := range l.table {
		if !l.inUse(one) && (oldest == nil || one.seen.Before(oldest.seen)) {
			oldest = one
		}
	}
	if oldest != nil {
		l.drop(oldest)
	}
	return oldest != nil
}

// drop closes a lane that is not in use. There is nothing to be done about a
// connection that cannot be closed properly.
func (l *lanes) drop(one *lane) {
	delete(l.table, one.key)
	if one.conn != nil {
		_ = one.conn.Close()
	}
}

// closeIdle closes what has been idle for too long.
func (l *lanes) closeIdle(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.table {
		switch {
		case l.inUse(one):
			one.seen = now
		case now.Sub(one.seen) >= l.config.Limits.Idle:
			l.drop(one)
		}
	}
}

func (l *lanes) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.swarms {
		if s != nil {
			n += len(s.Conns())
		}
	}
	return n
}

func (l *lanes) close() error {
	l.mu.Lock()
	l.closed = true
	swarms := l.swarms
	l.mu.Unlock()
	var faults []error
	for _, s := range swarms {
		if s != nil {
			faults = append(faults, s.Close(), s.Peerstore().Close())
		}
	}
	return errors.Join(faults...)
}

// dial connects to a peer once more, at the first of its addresses that
// answers, in the lane's order.
func (l *lanes) dial(ctx context.Context, to laneKey) (network.Conn, error) {
	addresses := l.addresses(ctx, to)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address is known", seam.ErrUnreachable)
	}
	s, err := l.swarmOf(to.lane, addresses[0])
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, at := range addresses {
		began := time.Now()
		s.Backoff().Clear(to.peer)
		s.Peerstore().ClearAddrs(to.peer)
		s.Peerstore().AddAddrs(to.peer, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
		conn, err := s.DialPeer(network.WithDialPeerTimeout(ctx, l.config.HandshakeTimeout/2), to.peer)
		if err == nil {
			return conn, nil
		}
		if mismatch, ok := proved(err); ok {
			err = &WrongIdentityError{Wanted: seam.PeerID(to.peer.String()), Proved: seam.PeerID(mismatch.Actual.String())}
		}
		failures = append(failures, notConnected(err))
		ended := ctx.Err() != nil
		if !ended || time.Since(began) >= min(silentAfter, l.config.HandshakeTimeout/4) {
			l.silent.note(to.peer, at, time.Now())
		}
		if ended {
			break
		}
	}
	return nil, several(failures)
}

func (l *lanes) swarmOf(lane int, at ma.Multiaddr) (*swarm.Swarm, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, seam.ErrClosed
	}
	if l.swarms[lane] == nil {
		s, err := l.newSwarm(at)
		if err != nil {
			return nil, fmt.Errorf("preparing lane %d: %w", lane, err)
		}
		l.swarms[lane] = s
	}
	return l.swarms[lane], nil
}

// newSwarm makes a swarm that dials with the host's transport for an address.
func (l *lanes) newSwarm(at ma.Multiaddr) (*swarm.Swarm, error) {
	carrier := l.swarm.TransportForDialing(at)
	if carrier == nil {
		return nil, fmt.Errorf("%w: nothing dials %s", seam.ErrUnreachable, at)
	}
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	s, err := swarm.NewSwarm(l.id, store, eventbus.NewBus(),
		swarm.WithConnectionGater(gater{admit: l.config.Admit}),
		swarm.WithResourceManager(l.swarm.ResourceManager()),
		swarm.WithDialTimeout(l.config.HandshakeTimeout),
		swarm.WithDialTimeoutLocal(l.config.HandshakeTimeout),
		swarm.WithIPv6BlackHoleSuccessCounter(nil),
		swarm.WithUDPBlackHoleSuccessCounter(nil),
	)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	// The other end takes a lane for a connection like any other, and may open
	// streams on it: libp2p asks for our addresses at once.
	s.SetStreamHandler(l.swarm.StreamHandler())
	if err := s.AddTransport(carrier); err != nil {
		return nil, errors.Join(err, s.Close(), store.Close())
	}
	return s, nil
}

// addresses returns where a lane may be dialled, best first: lane i takes the
// i-th address behind that of Open's connection, round and round.
func (l *lanes) addresses(ctx context.Context, to laneKey) []ma.Multiaddr {
	known := l.book.whereabouts(ctx, to.peer)
	known = append(known, l.host.Peerstore().Addrs(to.peer)...)
	var beside ma.Multiaddr
	if conn := l.upkeep.connected(to.peer); conn != nil {
		beside = conn.RemoteMultiaddr()
		if len(known) == 0 && conn.Stat().Direction == network.DirOutbound {
			known = append(known, beside)
		}
	}
	order := laneOrder(known, beside, to.lane)
	l.silent.last(to.peer, order, time.Now())
	return order
}

func (l *lanes) connsTo(id peer.ID) (conns []network.Conn) {
	l.mu.Lock()
	swarms := l.swarms
	l.mu.Unlock()
	for _, s := range swarms {
		if s != nil {
			conns = append(conns, s.ConnsToPeer(id)...)
		}
	}
	return conns
}
