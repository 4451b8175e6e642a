package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// lanes are the further connections that this process has dialled.
//
// libp2p's swarm keeps to one connection when it dials a peer. So each lane i has a
// swarm of its own, with one connection to a peer. The library's swarm does all
// that a connection needs (accounting, gating, serving streams that the other end
// opens), and shares the host's transport and stream handler. A host for each lane
// would announce itself to the peer as a process without addresses; for a
// connection outside any swarm, this package would have to do all that itself.
type lanes struct {
	*dialer

	mu     sync.Mutex
	closed bool
	swarms [1 + transport.MaxLane]*swarm.Swarm // made when first used; [0] is none
	turns  *lru.Cache[laneKey, chan struct{}]
	silent silent
}

// maxTurns bounds the lanes for which a lock is remembered, so that only one call dials
// each; if a lock is forgotten during a dial, a second call could dial the same lane.
const maxTurns = 1024

type laneKey struct {
	peer peer.ID
	lane int
}

func newLanes(d *dialer) *lanes {
	turns, _ := lru.New[laneKey, chan struct{}](maxTurns) // fails for sizes below one only
	return &lanes{dialer: d, turns: turns, silent: newSilent()}
}

// connect returns the connection that is a lane, and dials it if need be.
func (l *lanes) connect(ctx context.Context, to laneKey) (network.Conn, error) {
	turn := make(chan struct{}, 1)
	if earlier, known, _ := l.turns.PeekOrAdd(to, turn); known {
		turn = earlier
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := l.swarmOf(to.lane)
	if err != nil {
		return nil, err
	}
	for _, conn := range s.ConnsToPeer(to.peer) {
		if !conn.IsClosed() {
			return conn, nil
		}
	}
	return l.dial(ctx, s, to)
}

// conns are the connections of all lanes to all peers.
func (l *lanes) conns() (conns []network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.swarms {
		if s != nil {
			conns = append(conns, s.Conns()...)
		}
	}
	return conns
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
func (l *lanes) dial(ctx context.Context, s *swarm.Swarm, to laneKey) (network.Conn, error) {
	addresses := l.addresses(ctx, to)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address is known", transport.ErrUnreachable)
	}
	var failures []error
	for _, at := range addresses {
		began := time.Now()
		s.Backoff().Clear(to.peer)
		s.Peerstore().ClearAddrs(to.peer)
		s.Peerstore().AddAddrs(to.peer, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
		conn, err := s.DialPeer(network.WithDialPeerTimeout(ctx, l.config.handshakeTimeout/2), to.peer)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, notConnected(err))
		ended := ctx.Err() != nil
		if !ended || time.Since(began) >= min(silentAfter, l.config.handshakeTimeout/4) {
			l.silent.note(to.peer, at, time.Now())
		}
		if ended {
			break
		}
	}
	return nil, several(failures)
}

func (l *lanes) swarmOf(lane int) (*swarm.Swarm, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, transport.ErrClosed
	}
	if l.swarms[lane] == nil {
		s, err := l.newSwarm()
		if err != nil {
			return nil, fmt.Errorf("preparing lane %d: %w", lane, err)
		}
		l.swarms[lane] = s
	}
	return l.swarms[lane], nil
}

// dialled has one address of each kind that the host's transports can dial.
var dialled = []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/1"), ma.StringCast("/p2p-circuit")}

// newSwarm makes a swarm that dials with the host's transports.
func (l *lanes) newSwarm() (*swarm.Swarm, error) {
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	s, err := swarm.NewSwarm(l.id, store, eventbus.NewBus(), append(
		swarmOptions(gater{admit: l.config.Admit}, l.swarm.ResourceManager()),
		swarm.WithDialTimeout(l.config.handshakeTimeout),
		swarm.WithDialTimeoutLocal(l.config.handshakeTimeout),
	)...)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	// The other end takes a lane for a connection like any other, and may open
	// streams on it: libp2p asks for our addresses at once.
	s.SetStreamHandler(l.swarm.StreamHandler())
	l.upkeep.watch(s)
	// A host forgets the keys of those who have gone; here is none.
	s.Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		store.RemovePeer(c.RemotePeer())
	}})
	for _, kind := range dialled {
		if err := s.AddTransport(l.swarm.TransportForDialing(kind)); err != nil {
			return nil, errors.Join(err, s.Close(), store.Close())
		}
	}
	return s, nil
}

// addresses returns where a lane may be dialled, best first: lane i takes the
// i-th address behind that of Open's connection, round and round.
func (l *lanes) addresses(ctx context.Context, to laneKey) []ma.Multiaddr {
	known := l.whereabouts(ctx, to.peer)
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
