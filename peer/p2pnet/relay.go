package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Relay says how peers are reached that nobody can dial, by libp2p's circuit relay
// (version 2). The streams through a relay are those of the two ends, which prove
// their identities to each other; the relay sees how much is said, not what.
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

// What a relay gives. There is no bound on the bytes of a circuit: models go through
// it. What a circuit buffers is bounded by relayBuffer, and the relay's own traffic is
// what its owner has decided to give by Relay.Serve.
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

// options are those of a host that depend on the relay.
func (r Relay) options(door *door) (options []libp2p.Option) {
	if r.Serve {
		options = append(options, libp2p.EnableNATService())
	}
	if r.Punch {
		return append(options, libp2p.Transport(door.newTCP()), libp2p.EnableHolePunching())
	}
	return append(options,
		// Sharing the listening port with outgoing connections would let a second
		// process take the same port unnoticed; its only use is hole punching.
		libp2p.Transport(door.newTCP(tcp.DisableReuseport())),
		libp2p.DisableIdentifyAddressDiscovery(),
	)
}

// relaying is what a process does with relays.
type relaying struct {
	via     []address
	service *relay.Relay
	keepers sync.WaitGroup
}

// startRelaying serves as a relay, and begins to keep a place at others.
func (t *Transport) startRelaying() (err error) {
	if err := t.watchReachable(); err != nil {
		return err
	}
	if t.config.Relay.Serve {
		resources := relay.DefaultResources()
		resources.Limit = nil
		resources.ReservationTTL, resources.BufferSize = relayTerm, relayBuffer
		resources.MaxReservations, resources.MaxCircuits = relayReservations, relayCircuits
		resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = relayPerAddress, relayReservations
		everyAddress := relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true })
		access := relayAccess{t.config.Member}
		if t.relaying.service, err = relay.New(t.host, relay.WithResources(resources), everyAddress, relay.WithACL(access)); err != nil {
			return fmt.Errorf("serving as a relay: %w", err)
		}
	}
	for _, text := range t.config.Relay.Via {
		a, err := parseAddress(text)
		if err != nil {
			return err
		}
		t.relaying.via = append(t.relaying.via, a)
		t.relaying.keepers.Go(func() { t.keepPlace(a) })
	}
	return nil
}

// wait ends the service, and waits for what startRelaying began; the transport's
// context has ended.
func (r *relaying) wait() {
	r.keepers.Wait()
	if r.service != nil {
		_ = r.service.Close()
	}
}

// keepPlace reserves a place at a relay, and again when it is lost or grows old.
func (t *Transport) keepPlace(at address) {
	var reserved time.Time
	told := false
	ticker := time.NewTicker(relayLook)
	defer ticker.Stop()
	for {
		if reserved.IsZero() || time.Since(reserved) > relayRenewal || t.swarm.Connectedness(at.id) != network.Connected {
			err := t.reserve(at)
			switch {
			case err == nil:
				t.log.Info("others can reach this peer through a relay", zap.Stringer("relay", at.id))
				reserved, told = time.Now(), false
			case t.ending.Err() == nil && !told:
				t.log.Warn("no place at the relay; trying further. Check that it runs with the relay service", zap.Stringer("relay", at.id), zap.Error(err))
				reserved, told = time.Time{}, true
			}
		}
		select {
		case <-t.ending.Done():
			return
		case <-ticker.C:
		}
	}
}

func (t *Transport) reserve(at address) error {
	ctx, leave, err := t.begin(context.Background(), connectHandshakes*t.config.HandshakeTimeout)
	if err != nil {
		return err
	}
	defer leave()
	addresses, err := at.resolve(ctx)
	if err != nil {
		return err
	}
	if _, err := t.dial(ctx, at.id, addresses); err != nil {
		return err
	}
	_, err = client.Reserve(ctx, t.host, peer.AddrInfo{ID: at.id})
	if t.introduced(ctx, err, at.id) {
		_, err = client.Reserve(ctx, t.host, peer.AddrInfo{ID: at.id})
	}
	return err
}

// reserved tells whether the connection with a peer keeps somebody reachable.
func (t *Transport) reserved(id peer.ID) bool {
	for _, a := range t.relaying.via {
		if a.id == id {
			return true
		}
	}
	info := t.host.ConnManager().GetTagInfo(id)
	return info != nil && info.Tags[reservationTag] > 0
}

// addresses are those through relays, for a record.
func (r *relaying) addresses() (texts []string) {
	for _, a := range r.via {
		texts = append(texts, relayPrefix+a.id.String())
	}
	return texts
}

// joinAddresses are those through relays, for people to copy.
func (r *relaying) joinAddresses(self seam.PeerID) (texts []string) {
	for _, a := range r.via {
		texts = append(texts, a.String()+circuitSuffix+"/p2p/"+string(self))
	}
	return texts
}

// resolve returns the addresses that a stands for, also if it leads through a relay.
func (t *Transport) resolve(ctx context.Context, a address) ([]ma.Multiaddr, error) {
	if a.relay == "" {
		return a.resolve(ctx)
	}
	at := []address{a}
	if a.host == "" {
		at = t.book.lookup(a.relay)
	}
	circuit, err := ma.NewMultiaddr("/p2p/" + a.relay.String() + circuitSuffix)
	if err != nil {
		return nil, err
	}
	var found []ma.Multiaddr
	faults := []error{seam.ErrUnreachable}
	for _, one := range at {
		if one.host == "" || one.relay != a.relay && one.relay != "" {
			continue // a relay behind a relay
		}
		resolved, err := one.resolve(ctx)
		faults = append(faults, err)
		for _, place := range resolved {
			found = append(found, place.Encapsulate(circuit))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("nothing is known of where the relay %s listens: %w", a.relay, errors.Join(faults...))
	}
	return found, nil
}

// parseRelay reads the short form of an address through a relay, behind its prefix.
func parseRelay(text string) (address, error) {
	id, err := parsePeer(seam.PeerID(text))
	return address{family: anyFamily, relay: id}, err
}

// parseCircuit reads a multiaddr, through a relay or not.
func parseCircuit(text string) (address, error) {
	outer, inner, through := strings.Cut(text, circuitSuffix)
	if !through {
		return parseMultiaddr(text)
	}
	a, err := parseMultiaddr(outer)
	switch {
	case err != nil:
		return address{}, err
	case a.id == "":
		return address{}, errors.New("the relay's /p2p/ID is missing")
	}
	a.relay, a.id = a.id, ""
	if inner == "" {
		return a, nil
	}
	id, ok := strings.CutPrefix(inner, "/p2p/")
	if !ok {
		return address{}, fmt.Errorf("%q is not understood behind %s", inner, circuitSuffix)
	}
	a.id, err = parsePeer(seam.PeerID(id))
	return a, err
}

func isCircuit(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}
