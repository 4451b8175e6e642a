package p2pnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// dialLane connects to a peer once more, at the first of its addresses that
// answers, in the lane's order.
func (t *Transport) dialLane(ctx context.Context, to laneKey) (network.Conn, error) {
	addresses := t.laneAddresses(ctx, to)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address is known", seam.ErrUnreachable)
	}
	s, err := t.laneSwarm(to.lane, addresses[0])
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, at := range addresses {
		began := time.Now()
		s.Backoff().Clear(to.peer)
		s.Peerstore().ClearAddrs(to.peer)
		s.Peerstore().AddAddrs(to.peer, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
		conn, err := s.DialPeer(network.WithDialPeerTimeout(ctx, t.config.HandshakeTimeout/2), to.peer)
		if err == nil {
			return conn, nil
		}
		if mismatch, ok := proved(err); ok {
			err = &WrongIdentityError{Wanted: seam.PeerID(to.peer.String()), Proved: seam.PeerID(mismatch.Actual.String())}
		}
		failures = append(failures, notConnected(err))
		ended := ctx.Err() != nil
		if !ended || time.Since(began) >= min(silentAfter, t.config.HandshakeTimeout/4) {
			t.lanes.silent.note(to.peer, at, time.Now())
		}
		if ended {
			break
		}
	}
	return nil, several(failures)
}

// laneSwarm returns the swarm of a lane, made when it is first asked for.
func (t *Transport) laneSwarm(lane int, at ma.Multiaddr) (*swarm.Swarm, error) {
	l := &t.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, seam.ErrClosed
	}
	if l.swarms[lane] == nil {
		s, err := t.newLaneSwarm(at)
		if err != nil {
			return nil, fmt.Errorf("preparing lane %d: %w", lane, err)
		}
		l.swarms[lane] = s
	}
	return l.swarms[lane], nil
}

// newLaneSwarm makes a swarm that dials with the host's transport for an address.
func (t *Transport) newLaneSwarm(at ma.Multiaddr) (*swarm.Swarm, error) {
	carrier := t.swarm.TransportForDialing(at)
	if carrier == nil {
		return nil, fmt.Errorf("%w: nothing dials %s", seam.ErrUnreachable, at)
	}
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	s, err := swarm.NewSwarm(t.id, store, eventbus.NewBus(),
		swarm.WithConnectionGater(gater{admit: t.config.Admit}),
		swarm.WithResourceManager(t.swarm.ResourceManager()),
		swarm.WithDialTimeout(t.config.HandshakeTimeout),
		swarm.WithDialTimeoutLocal(t.config.HandshakeTimeout),
		swarm.WithIPv6BlackHoleSuccessCounter(nil),
		swarm.WithUDPBlackHoleSuccessCounter(nil),
	)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	// The other end takes a lane for a connection like any other, and may open
	// streams on it: libp2p asks for our addresses at once.
	s.SetStreamHandler(t.swarm.StreamHandler())
	if err := s.AddTransport(carrier); err != nil {
		return nil, errors.Join(err, s.Close(), store.Close())
	}
	return s, nil
}

// laneAddresses returns where a lane may be dialled, best first: lane i takes the
// i-th address behind that of Open's connection, round and round.
func (t *Transport) laneAddresses(ctx context.Context, to laneKey) []ma.Multiaddr {
	known := t.whereabouts(ctx, to.peer)
	known = append(known, t.host.Peerstore().Addrs(to.peer)...)
	var beside ma.Multiaddr
	if conn := t.connected(to.peer); conn != nil {
		beside = conn.RemoteMultiaddr()
		if len(known) == 0 && conn.Stat().Direction == network.DirOutbound {
			known = append(known, beside)
		}
	}
	order := laneOrder(known, beside, to.lane)
	t.lanes.silent.last(to.peer, order, time.Now())
	return order
}

// laneOrder puts distinct addresses in the order in which a lane tries them.
// Loopback addresses are left out unless beside, the address of Open's connection,
// is one: from another machine they lead elsewhere.
func laneOrder(known []ma.Multiaddr, beside ma.Multiaddr, lane int) []ma.Multiaddr {
	var order []ma.Multiaddr
	for _, a := range known {
		remote := beside != nil && !manet.IsIPLoopback(beside)
		if !slices.ContainsFunc(order, a.Equal) && !(remote && manet.IsIPLoopback(a)) {
			order = append(order, a)
		}
	}
	if len(order) == 0 {
		return nil
	}
	first := slices.IndexFunc(order, func(a ma.Multiaddr) bool { return beside != nil && a.Equal(beside) })
	if first < 0 {
		// Who dialled us did so from another port than the one it listens on.
		first = max(0, slices.IndexFunc(order, func(a ma.Multiaddr) bool { return sameHost(a, beside) }))
	}
	first = (first + lane) % len(order)
	return slices.Concat(order[first:], order[:first])
}

func sameHost(a, b ma.Multiaddr) bool {
	ip, err := manet.ToIP(a)
	if err != nil || b == nil {
		return false
	}
	other, err := manet.ToIP(b)
	return err == nil && ip.Equal(other)
}

// silent remembers addresses at which a peer was not found, so that lanes do not
// wait for the same ones again: a machine has addresses that lead nowhere from
// elsewhere, and tells them all.
type silent struct {
	mu    sync.Mutex
	since map[silentKey]time.Time
}

type silentKey struct {
	peer    peer.ID
	address string
}

const (
	// silentAfter is for how long an address has said nothing when a caller who gives
	// up first still counts it as silent.
	silentAfter = time.Second
	// silentFor is how long an address comes last.
	silentFor = 10 * time.Minute
	// maxSilent bounds the memory; once it is full it begins anew.
	maxSilent = 1024
)

func (s *silent) note(id peer.ID, at ma.Multiaddr, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil || len(s.since) >= maxSilent {
		s.since = make(map[silentKey]time.Time)
	}
	s.since[silentKey{id, at.String()}] = now
}

// last moves the addresses that were silent behind the others.
func (s *silent) last(id peer.ID, addresses []ma.Multiaddr, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rank := func(a ma.Multiaddr) int {
		if at, ok := s.since[silentKey{id, a.String()}]; ok && now.Sub(at) < silentFor {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(addresses, func(a, b ma.Multiaddr) int { return cmp.Compare(rank(a), rank(b)) })
}
