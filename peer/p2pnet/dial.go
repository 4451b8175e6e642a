package p2pnet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/secure"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// connectHandshakes is how many handshakeTimeout a Connect may take:
	// resolving a name, learning the identity, the connection itself.
	connectHandshakes = 3
	// acquaintance is how long, once one address of a name has proved an
	// identity, the others are waited for. It decides whom a first join trusts.
	acquaintance = 500 * time.Millisecond
)

// dialer connects to other processes.
type dialer struct {
	*node
	known  *knownFile
	upkeep *upkeep
}

// Connect connects to the process at an address; see transport.Dialer. For an address without an id it learns the
// identity first; *IdentityChangedError says that it is not the remembered one. Other errors: ErrAddress,
// transport.ErrSelf, transport.ErrDuplicate, *WrongIdentityError, transport.ErrUnreachable,
// transport.ErrNotAdmitted, transport.ErrClosed, and the context's.
func (d *dialer) Connect(ctx context.Context, text string) (transport.PeerID, error) {
	to, err := parseAddress(text)
	if err != nil {
		return "", fmt.Errorf("p2pnet: %w", err)
	}
	ctx, leave, err := d.begin(ctx, connectHandshakes*d.config.handshakeTimeout)
	if err != nil {
		return "", fmt.Errorf("p2pnet: connecting to %s: %w", text, err)
	}
	defer leave()
	id, err := d.connect(ctx, to)
	if err != nil {
		return "", fmt.Errorf("p2pnet: connecting to %s: %w", text, d.whyNot(ctx, err))
	}
	if len(d.lookup(id)) == 0 {
		d.book.Add(id, []address{to})
	}
	return transport.PeerID(id.String()), nil
}

func (d *dialer) connect(ctx context.Context, to address) (peer.ID, error) {
	addresses, err := d.resolve(ctx, to)
	if to.id == d.id {
		return "", d.mirror(ctx, addresses)
	}
	if err != nil {
		return "", err
	}
	if to.id == "" && to.relay != "" {
		return "", fmt.Errorf("%w %q: behind a relay only who is named by /p2p/ID can be found", ErrAddress, to)
	}
	if to.id == "" {
		return d.meet(ctx, to, addresses)
	}
	_, err = d.dial(ctx, to.id, addresses)
	return to.id, err
}

// dial returns a connection to a peer and makes one if there is none. By itself libp2p refuses
// to dial again for 5 s or more after a failure; here the caller decides how often to try.
func (d *dialer) dial(ctx context.Context, id peer.ID, addresses []ma.Multiaddr) (network.Conn, error) {
	if err := d.admitted(id); err != nil {
		return nil, err
	}
	d.swarm.Backoff().Clear(id)
	d.host.Peerstore().AddAddrs(id, addresses, peerstore.TempAddrTTL)
	before := d.swarm.ConnsToPeer(id)
	conn, err := d.swarm.DialPeer(ctx, id)
	if d.introduced(ctx, err, relaysOf(addresses)...) {
		d.swarm.Backoff().Clear(id)
		conn, err = d.swarm.DialPeer(ctx, id)
	}
	if err == nil {
		if older := d.upkeep.connected(id); !slices.Contains(before, conn) && older != nil && !isCircuit(older.RemoteMultiaddr()) {
			return older, nil // the peer has dialled meanwhile; upkeep closes the second connection
		}
		return conn, nil
	}
	// What has failed must not be dialled again with what the caller learns next.
	d.host.Peerstore().SetAddrs(id, addresses, 0)
	return nil, notConnected(err)
}

// mirror returns transport.ErrDuplicate if another process proves the local identity at one
// of these addresses, and that process then learns of this one; else it returns
// transport.ErrSelf. libp2p itself refuses to dial the local identity.
func (d *dialer) mirror(ctx context.Context, addresses []ma.Multiaddr) error {
	ctx, cancel := context.WithTimeout(ctx, d.config.handshakeTimeout)
	defer cancel()
	for _, at := range addresses {
		by := d.swarm.TransportForDialing(at)
		if by == nil || isCircuit(at) {
			continue
		}
		conn, err := by.Dial(ctx, at, d.id)
		if errors.Is(err, secure.ErrDuplicate) {
			return fmt.Errorf("%w (at %s)", transport.ErrDuplicate, at)
		}
		if err == nil {
			_ = conn.Close() // does not happen: a handshake with the local identity fails
		}
	}
	return transport.ErrSelf
}

// sighting is an identity that was proved at an address, or the reason why none was.
type sighting struct {
	id      peer.ID
	address ma.Multiaddr
	err     error
}

// meet connects to the peer that answers at an address without an id: to an
// identity that is remembered for the address, else to the first that is proved
// there. meet then remembers all identities that were proved behind the name.
func (d *dialer) meet(ctx context.Context, to address, addresses []ma.Multiaddr) (peer.ID, error) {
	remembered, err := d.known.lookup(to.key())
	if err != nil {
		return "", err
	}
	seen, err := d.lookAround(ctx, addresses)
	if err == transport.ErrSelf {
		err = d.mirror(ctx, addresses)
	}
	if err != nil {
		return "", err
	}
	trusted := seen
	if len(remembered) > 0 {
		trusted = slices.DeleteFunc(slices.Clone(seen), func(s sighting) bool {
			return !slices.Contains(remembered, transport.PeerID(s.id.String()))
		})
	}
	if len(trusted) == 0 {
		changed := &IdentityChangedError{
			Address: to.key(), Remembered: remembered, Proved: transport.PeerID(seen[0].id.String()), File: d.known.path,
		}
		d.log.Warn("an address answers with another identity", zap.Error(changed))
		return "", changed
	}
	var failures []error
	for _, s := range trusted {
		if _, err := d.dial(ctx, s.id, []ma.Multiaddr{s.address}); err != nil {
			failures = append(failures, err)
			continue
		}
		if len(remembered) == 0 {
			d.remember(to, seen)
		}
		return s.id, nil
	}
	return "", several(failures)
}

// remember writes the identities that were proved at an address to the file. If
// it cannot write, the peer goes on: the next join trusts on first use again.
func (d *dialer) remember(to address, seen []sighting) {
	var ids []transport.PeerID
	for _, s := range seen {
		if id := transport.PeerID(s.id.String()); !slices.Contains(ids, id) {
			ids = append(ids, id)
			d.log.Info("learned the identity behind an address, and trust it from now on",
				zap.String("address", to.key()), zap.String("peer", string(id)), zap.String("file", d.known.path))
		}
	}
	if err := d.known.remember(to.key(), ids); err != nil {
		d.log.Warn("cannot remember the identity behind an address", zap.String("address", to.key()), zap.Error(err))
	}
}

// lookAround dials every address at the same time and returns the identities
// that were proved, in the order of their answers, without the local peer. If
// there is none, the error says why.
func (d *dialer) lookAround(ctx context.Context, addresses []ma.Multiaddr) ([]sighting, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan sighting, len(addresses))
	for _, a := range addresses {
		go func() { results <- d.look(ctx, a) }()
	}
	var (
		seen     []sighting
		failures []error
		self     bool
	)
	for range addresses {
		s := <-results
		switch {
		case s.err != nil:
			failures = append(failures, s.err)
		case s.id == d.id:
			self = true
		default:
			if len(seen) == 0 {
				defer time.AfterFunc(acquaintance, cancel).Stop()
			}
			seen = append(seen, s)
		}
	}
	switch {
	case len(seen) > 0:
		return seen, nil
	case self:
		return nil, transport.ErrSelf // or it is another process with this key
	}
	return nil, unreachable(several(failures))
}

// look dials an address with an id that nobody has: the error of the failed
// handshake names the identity that is there.
func (d *dialer) look(ctx context.Context, at ma.Multiaddr) sighting {
	public, _, _ := ed25519.GenerateKey(nil) // never fails
	nobody, err := idOfKey(public)
	if err != nil {
		return sighting{err: err}
	}
	defer func() {
		d.host.Peerstore().ClearAddrs(nobody)
		d.host.Peerstore().RemovePeer(nobody)
		d.swarm.Backoff().Clear(nobody)
	}()
	d.host.Peerstore().AddAddrs(nobody, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
	ctx = network.WithDialPeerTimeout(ctx, d.config.handshakeTimeout)
	_, err = d.swarm.DialPeer(ctx, nobody)
	if errors.Is(err, swarm.ErrDialToSelf) {
		return sighting{id: d.id, address: at}
	}
	mismatch, ok := errors.AsType[sec.ErrPeerIDMismatch](err)
	if !ok {
		return sighting{err: brief{err}}
	}
	if !isEd25519(mismatch.Actual) {
		return sighting{err: fmt.Errorf("the peer %s at %s has no Ed25519 key", mismatch.Actual, at)}
	}
	return sighting{id: mismatch.Actual, address: at}
}

// introduced reports true if an attempt failed because a relay did not know this
// process, and one of the relays knows it now.
func (d *dialer) introduced(ctx context.Context, err error, relays ...peer.ID) (done bool) {
	if err == nil || d.config.Introduce == nil || !strings.Contains(err.Error(), pb.Status_PERMISSION_DENIED.String()) {
		return false // libp2p's own error has no type
	}
	slices.Sort(relays)
	for _, id := range slices.Compact(relays) {
		if err := d.config.Introduce(ctx, transport.PeerID(id.String())); err != nil {
			d.log.Debug("a relay is not to be convinced that this process takes part", zap.Stringer("relay", id), zap.Error(err))
			continue
		}
		done = true
	}
	return done
}

// Learn remembers the addresses of a peer in place of those learned before. It
// takes every form that Connect takes. It leaves out addresses that are
// malformed or name another peer; if the id is malformed, it remembers nothing.
func (d *dialer) Learn(peer transport.PeerID, addresses []string) {
	id, err := parsePeer(peer)
	if err != nil || id == d.id {
		d.log.Debug("ignored addresses", zap.String("peer", string(peer)), zap.Error(err))
		return
	}
	var good []address
	for _, text := range addresses {
		if len(good) == maxBookAddresses {
			break
		}
		a, err := parseAddress(text)
		if err != nil || (a.id != "" && a.id != id) {
			d.log.Debug("ignored an address", zap.String("peer", string(peer)), zap.String("address", text), zap.Error(err))
			continue
		}
		good = append(good, a)
	}
	d.book.Add(id, good)
}

// whereabouts resolves the addresses that the book has of a peer. An empty answer is
// no error: libp2p may know the address of a peer that connected to this process.
func (d *dialer) whereabouts(ctx context.Context, id peer.ID) []ma.Multiaddr {
	var found []ma.Multiaddr
	for _, a := range d.lookup(id) {
		resolved, err := d.resolve(ctx, a)
		if err != nil {
			d.log.Debug("cannot resolve an address", zap.Stringer("peer", id), zap.Stringer("address", a), zap.Error(err))
			continue
		}
		found = append(found, resolved...)
	}
	return found
}

// resolve returns the IP addresses of a; if a leads through a relay, those of the relay.
func (d *dialer) resolve(ctx context.Context, a address) ([]ma.Multiaddr, error) {
	if a.relay == "" {
		return a.resolve(ctx)
	}
	at := []address{a}
	if a.host == "" {
		at = d.lookup(a.relay)
	}
	circuit, err := ma.NewMultiaddr("/p2p/" + a.relay.String() + circuitSuffix)
	if err != nil {
		return nil, err
	}
	var found []ma.Multiaddr
	faults := []error{transport.ErrUnreachable}
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
