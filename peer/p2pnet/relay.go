package p2pnet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Relay says how peers are reached that nobody can dial, by libp2p's circuit relay (version
// 2). The streams through a relay are those of the two ends, which prove their identities
// to each other; the relay sees how much they send, not what.
type Relay struct {
	// Via are addresses of relays, at most MaxRelays, each with /p2p/ID: this process
	// keeps a place at each, and is reached through it. A relay has to be a member of
	// the run, or others do not learn where it is.
	Via []string
	// Serve makes this process a relay for others: for members, see Config.Member. It
	// also tells others whether it can dial them, by libp2p's AutoNAT.
	Serve bool
	// Punch makes this process try to turn a relayed connection into a direct one,
	// both ends dialling each other at once. Both must have it. Listening ports are
	// then shared with outgoing connections, so a second process on the same port is
	// not noticed.
	Punch bool
}

// MaxRelays bounds Relay.Via: each takes one of a record's addresses.
const MaxRelays = 2

// Limits of a relay. The bytes of a circuit are not bounded, since models go through
// it. relayBuffer bounds what a circuit buffers; the relay's owner has agreed to its
// traffic by setting Relay.Serve.
const (
	relayReservations = 128
	// relayCircuits bounds the connections that lead to one peer, or from one, at a time.
	relayCircuits = 64
	// relayPerAddress bounds the peers behind one address that have a place.
	relayPerAddress = 64
	// relayBuffer is for each direction of a circuit.
	relayBuffer = 64 << 10
	// relayTerm is how long a place is kept whose peer stays connected and does not renew
	// it: for good, since a place ends with the connection. libp2p tells the end by the
	// clock, and the peer holds it against its own: any two clocks must agree on it.
	relayTerm = 200 * 365 * 24 * time.Hour
	// relayRenewal is the time between two renewals, and relayLook that between two
	// looks at whether the connection to a relay, and the place with it, is gone.
	relayRenewal = 20 * time.Minute
	relayLook    = 2 * time.Second
)

const (
	// relayPrefix begins the short form of an address through a relay, which fits a
	// record; the id of the relay follows.
	relayPrefix   = "relay:"
	circuitSuffix = "/p2p-circuit"
	// reservationTag is how libp2p's relay service marks those that have a place.
	reservationTag = "relay-reservation"
)

func (r Relay) faults() (faults []error) {
	if len(r.Via) > MaxRelays {
		faults = append(faults, fmt.Errorf("Relay.Via has %d addresses, at most %d are used", len(r.Via), MaxRelays))
	}
	for _, text := range r.Via {
		if a, err := parseAddress(text); err != nil {
			faults = append(faults, fmt.Errorf("Relay.Via: %w", err))
		} else if a.id == "" || a.relay != "" {
			faults = append(faults, fmt.Errorf("Relay.Via: %q must be the address of a peer that listens there, with /p2p/ID", text))
		}
	}
	return faults
}

// relays is a process's use of relays, and its own service as one.
type relays struct {
	*dialer
	via     []address
	service *relay.Relay
	keepers sync.WaitGroup
}

func (r *relays) start() (err error) {
	if err := r.watchReachable(); err != nil {
		return err
	}
	if r.config.Relay.Serve {
		resources := relay.DefaultResources()
		resources.Limit = nil
		resources.ReservationTTL, resources.BufferSize = relayTerm, relayBuffer
		resources.MaxReservations, resources.MaxCircuits = relayReservations, relayCircuits
		resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = relayPerAddress, relayReservations
		everyAddress := relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true })
		access := relayAccess{r.config.Member}
		if r.service, err = relay.New(r.host, relay.WithResources(resources), everyAddress, relay.WithACL(access)); err != nil {
			return fmt.Errorf("serving as a relay: %w", err)
		}
	}
	for _, text := range r.config.Relay.Via {
		a, err := parseAddress(text)
		if err != nil {
			return err
		}
		r.via = append(r.via, a)
		r.keepers.Go(func() { r.keepPlace(a) })
	}
	return nil
}

// watchReachable tells Config.Reachable what libp2p's AutoNAT finds out, until the
// transport ends: it asks relays, which serve for that, to dial this process.
func (r *relays) watchReachable() error {
	if r.config.Reachable == nil {
		return nil
	}
	found, err := r.host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		return fmt.Errorf("watching whether others can dial this process: %w", err)
	}
	context.AfterFunc(r.ending, func() { _ = found.Close() })
	r.keepers.Go(func() {
		for e := range found.Out() {
			r.tellReachable(e.(event.EvtLocalReachabilityChanged).Reachability)
		}
	})
	return nil
}

// tellReachable reports the finding to Config.Reachable if judge accepts it.
func (r *relays) tellReachable(found network.Reachability) {
	switch reachable, because := judge(found, r.swarm.Conns()); {
	case because != "":
		r.log.Info("a relay could not dial this process, which is not believed", zap.String("because", because))
	case found != network.ReachabilityUnknown:
		r.config.Reachable(reachable)
	}
}

// wait ends the service and waits for the goroutines of start; the
// transport's context has ended before.
func (r *relays) wait() {
	r.keepers.Wait()
	if r.service != nil {
		_ = r.service.Close()
	}
}

// keepPlace reserves a place at a relay. It reserves again before the place expires, and
// when the connection on which it was reserved has ended.
func (r *relays) keepPlace(at address) {
	var by network.Conn
	var reserved time.Time
	warned := false
	ticker := time.NewTicker(relayLook)
	defer ticker.Stop()
	for {
		if by == nil || by.IsClosed() || time.Since(reserved) > relayRenewal {
			var err error
			by, err = r.reserve(at)
			switch {
			case err == nil:
				r.log.Info("others can reach this peer through a relay", zap.Stringer("relay", at.id))
				reserved, warned = time.Now(), false
			case r.ending.Err() == nil && !warned:
				r.log.Warn("no place at the relay; trying further. Check that it runs with the relay service", zap.Stringer("relay", at.id), zap.Error(err))
				warned = true
			}
		}
		select {
		case <-r.ending.Done():
			return
		case <-ticker.C:
		}
	}
}

// reserve reserves a place at a relay and returns the connection with the relay.
func (r *relays) reserve(at address) (network.Conn, error) {
	ctx, leave, err := r.begin(context.Background(), connectHandshakes*r.config.handshakeTimeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	addresses, err := at.resolve(ctx)
	if err != nil {
		return nil, err
	}
	by, err := r.dial(ctx, at.id, addresses)
	if err != nil {
		return nil, err
	}
	_, err = client.Reserve(ctx, r.host, peer.AddrInfo{ID: at.id})
	if r.introduced(ctx, err, at.id) {
		_, err = client.Reserve(ctx, r.host, peer.AddrInfo{ID: at.id})
	}
	if err != nil {
		return nil, err
	}
	return by, nil
}

// reserved tells whether the peer is a relay at which this process has a place, or has a place here.
func (r *relays) reserved(id peer.ID) bool {
	info := r.host.ConnManager().GetTagInfo(id)
	return info != nil && info.Tags[reservationTag] > 0 ||
		slices.ContainsFunc(r.via, func(a address) bool { return a.id == id })
}

func isCircuit(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// relayAccess makes a relay serve members only: libp2p's relay protocol has no field in
// which a peer could prove that it takes part in a run.
type relayAccess struct{ member func(transport.PeerID) error }

var _ relay.ACLFilter = relayAccess{}

func (r relayAccess) AllowReserve(id peer.ID, _ ma.Multiaddr) bool {
	return r.member(transport.PeerID(id.String())) == nil
}

func (r relayAccess) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	return r.AllowReserve(from, nil) && r.AllowReserve(to, nil)
}

func relaysOf(addresses []ma.Multiaddr) (relays []peer.ID) {
	for _, a := range addresses {
		if !isCircuit(a) {
			continue
		}
		if text, err := a.ValueForProtocol(ma.P_P2P); err == nil {
			if id, err := peer.Decode(text); err == nil {
				relays = append(relays, id)
			}
		}
	}
	return relays
}
