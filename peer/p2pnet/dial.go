package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// connectHandshakes is how many Config.HandshakeTimeout a Connect may take:
	// resolving a name, learning the identity, the connection itself.
	connectHandshakes = 3
	// acquaintance is how long, once one address of a name has proved an
	// identity, the others are waited for. It decides whom a first join trusts.
	acquaintance = 500 * time.Millisecond
)

// Connect reaches the process at an address, as seam.Dialer says. Of an address
// without an id it learns the identity first; *IdentityChangedError says that it
// is not the remembered one. Other errors: ErrAddress, ErrSelf,
// *WrongIdentityError, seam.ErrUnreachable, seam.ErrNotAdmitted, seam.ErrClosed, and the context's.
func (t *Transport) Connect(ctx context.Context, text string) (seam.PeerID, error) {
	to, err := parseAddress(text)
	if err != nil {
		return "", fmt.Errorf("p2pnet: %w", err)
	}
	ctx, leave, err := t.begin(ctx, connectHandshakes*t.config.HandshakeTimeout)
	if err != nil {
		return "", fmt.Errorf("p2pnet: connecting to %s: %w", text, err)
	}
	defer leave()
	id, err := t.connect(ctx, to)
	if err != nil {
		return "", fmt.Errorf("p2pnet: connecting to %s: %w", text, t.whyNot(ctx, err))
	}
	if len(t.book.lookup(id)) == 0 {
		t.book.learn(id, []address{to})
	}
	return seam.PeerID(id.String()), nil
}

// begin counts an operation in and bounds its context: by limit, and by the end
// of the transport.
func (t *Transport) begin(ctx context.Context, limit time.Duration) (context.Context, func(), error) {
	if !t.gate.enter() {
		return nil, nil, seam.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(t.ending, cancel)
	return ctx, func() {
		stop()
		cancel()
		t.gate.leave()
	}, nil
}

// whyNot is err, or seam.ErrClosed if that is why the operation failed.
func (t *Transport) whyNot(ctx context.Context, err error) error {
	if t.ending.Err() != nil {
		return fmt.Errorf("%w: %w", seam.ErrClosed, err)
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (t *Transport) connect(ctx context.Context, to address) (peer.ID, error) {
	if to.id == t.id {
		return "", ErrSelf
	}
	addresses, err := t.resolve(ctx, to)
	if err != nil {
		return "", err
	}
	if to.id == "" && to.relay != "" {
		return "", fmt.Errorf("%w %q: behind a relay only who is named by /p2p/ID can be found", ErrAddress, to)
	}
	if to.id == "" {
		return t.meet(ctx, to, addresses)
	}
	_, err = t.dial(ctx, to.id, addresses)
	return to.id, err
}

// dial makes sure of a connection to a peer. libp2p refuses to dial again for 5 s
// and more after a failure; how often to try is the caller's business.
func (t *Transport) dial(ctx context.Context, id peer.ID, addresses []ma.Multiaddr) (network.Conn, error) {
	if err := t.admitted(id); err != nil {
		return nil, err
	}
	t.swarm.Backoff().Clear(id)
	t.host.Peerstore().AddAddrs(id, addresses, peerstore.TempAddrTTL)
	before := t.swarm.ConnsToPeer(id)
	conn, err := t.swarm.DialPeer(ctx, id)
	if t.introduced(ctx, err, relaysOf(addresses)...) {
		t.swarm.Backoff().Clear(id)
		conn, err = t.swarm.DialPeer(ctx, id)
	}
	if err == nil {
		if older := t.connected(id); !slices.Contains(before, conn) && older != nil && !isCircuit(older.RemoteMultiaddr()) {
			return older, nil // the peer has dialled meanwhile; the second is left to upkeep
		}
		return conn, nil
	}
	// What has failed must not be dialled again with what the caller learns next.
	t.host.Peerstore().SetAddrs(id, addresses, 0)
	if mismatch, ok := proved(err); ok {
		return nil, &WrongIdentityError{Wanted: seam.PeerID(id.String()), Proved: seam.PeerID(mismatch.Actual.String())}
	}
	return nil, notConnected(err)
}

// sighting is an identity proved at an address, or why none was.
type sighting struct {
	id      peer.ID
	address ma.Multiaddr
	err     error
}

// meet connects to whoever answers at an address without an id: to an identity
// remembered for it if there is one, else to the first that proves itself, which
// is remembered then with the others behind the same name.
func (t *Transport) meet(ctx context.Context, to address, addresses []ma.Multiaddr) (peer.ID, error) {
	remembered, err := t.known.lookup(to.key())
	if err != nil {
		return "", err
	}
	seen, err := t.lookAround(ctx, addresses)
	if err != nil {
		return "", err
	}
	trusted := seen
	if len(remembered) > 0 {
		trusted = slices.DeleteFunc(slices.Clone(seen), func(s sighting) bool {
			return !slices.Contains(remembered, seam.PeerID(s.id.String()))
		})
	}
	if len(trusted) == 0 {
		changed := &IdentityChangedError{
			Address: to.key(), Remembered: remembered, Proved: seam.PeerID(seen[0].id.String()), File: t.known.path,
		}
		t.log.Warn("an address answers with another identity", zap.Error(changed))
		return "", changed
	}
	var failures []error
	for _, s := range trusted {
		if _, err := t.dial(ctx, s.id, []ma.Multiaddr{s.address}); err != nil {
			failures = append(failures, err)
			continue
		}
		if len(remembered) == 0 {
			t.remember(to, seen)
		}
		return s.id, nil
	}
	return "", several(failures)
}

// remember writes down who was met at an address. That it cannot be written is
// no reason not to go on: the next join will trust anew.
func (t *Transport) remember(to address, seen []sighting) {
	var ids []seam.PeerID
	for _, s := range seen {
		if id := seam.PeerID(s.id.String()); !slices.Contains(ids, id) {
			ids = append(ids, id)
			file := zap.Skip()
			if t.known.path != "" {
				file = zap.String("file", t.known.path)
			}
			t.log.Info("learned the identity behind an address, and trust it from now on",
				zap.String("address", to.key()), zap.String("peer", string(id)), file)
		}
	}
	if err := t.known.remember(to.key(), ids); err != nil {
		t.log.Warn("cannot remember the identity behind an address", zap.String("address", to.key()), zap.Error(err))
	}
}

// lookAround asks every address who is there, all at once, and returns the
// identities that were proved, in the order of their answers, without the local
// peer. At least one, or the error says why not.
func (t *Transport) lookAround(ctx context.Context, addresses []ma.Multiaddr) ([]sighting, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan sighting, len(addresses))
	for _, a := range addresses {
		go func() { results <- t.look(ctx, a) }()
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
		case s.id == t.id:
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
		return nil, ErrSelf
	}
	return nil, unreachable(several(failures))
}

// look dials an address for an id that nobody has, so that the handshake fails
// with the identity that is really there.
func (t *Transport) look(ctx context.Context, at ma.Multiaddr) sighting {
	nobody, err := throwaway()
	if err != nil {
		return sighting{err: err}
	}
	defer func() {
		t.host.Peerstore().ClearAddrs(nobody)
		t.host.Peerstore().RemovePeer(nobody)
		t.swarm.Backoff().Clear(nobody)
	}()
	t.host.Peerstore().AddAddrs(nobody, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
	ctx = network.WithDialPeerTimeout(ctx, t.config.HandshakeTimeout)
	_, err = t.swarm.DialPeer(ctx, nobody)
	if errors.Is(err, swarm.ErrDialToSelf) {
		return sighting{id: t.id, address: at}
	}
	mismatch, ok := proved(err)
	if !ok {
		return sighting{err: brief{err}}
	}
	if !isEd25519(mismatch.Actual) {
		return sighting{err: fmt.Errorf("the peer %s at %s has no Ed25519 key", mismatch.Actual, at)}
	}
	return sighting{id: mismatch.Actual, address: at}
}
