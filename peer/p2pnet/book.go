package p2pnet

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// maxBookPeers is how many peers addresses are remembered of; beyond it the
	// one learned longest ago is forgotten.
	maxBookPeers = 8192
	// maxBookAddresses is how many addresses of one peer are remembered.
	maxBookAddresses = 8
)

// book holds the addresses at which peers may be reached. libp2p's own store is
// not used for it: there, addresses expire and can only be added to.
type book struct {
	*node // set once there is one
	peers *lru.Cache[peer.ID, []address]
}

func newBook() *book {
	peers, _ := lru.New[peer.ID, []address](maxBookPeers) // fails for sizes below one only
	return &book{peers: peers}
}

// learn replaces what is known of a peer. It keeps the slice.
func (b *book) learn(id peer.ID, addresses []address) { b.peers.Add(id, addresses) }

// lookup returns what is known of a peer; the slice must not be changed.
func (b *book) lookup(id peer.ID) []address {
	addresses, _ := b.peers.Peek(id)
	return addresses
}

func (b *book) knows(id peer.ID) bool { return b.peers.Contains(id) }

// Learn remembers where a peer may be reached, replacing what was learned
// before. It takes every form that Connect takes. Addresses that are malformed,
// or that name another peer, are left out; so is everything about an id that is
// malformed.
func (b *book) Learn(peer seam.PeerID, addresses []string) {
	id, err := parsePeer(peer)
	if err != nil || id == b.id {
		b.log.Debug("ignored addresses", zap.String("peer", string(peer)), zap.Error(err))
		return
	}
	var good []address
	for _, text := range addresses {
		if len(good) == maxBookAddresses {
			break
		}
		a, err := parseAddress(text)
		if err != nil || (a.id != "" && a.id != id) {
			b.log.Debug("ignored an address", zap.String("peer", string(peer)), zap.String("address", text), zap.Error(err))
			continue
		}
		good = append(good, a)
	}
	b.learn(id, good)
}

// whereabouts resolves what the book knows of a peer. An empty answer is none:
// libp2p may still know where a peer was that connected to us.
func (b *book) whereabouts(ctx context.Context, id peer.ID) []ma.Multiaddr {
	var found []ma.Multiaddr
	for _, a := range b.lookup(id) {
		resolved, err := b.resolve(ctx, a)
		if err != nil {
			b.log.Debug("cannot resolve an address", zap.Stringer("peer", id), zap.Stringer("address", a), zap.Error(err))
			continue
		}
		found = append(found, resolved...)
	}
	return found
}

// resolve returns the addresses that a stands for, also if it leads through a relay.
func (b *book) resolve(ctx context.Context, a address) ([]ma.Multiaddr, error) {
	if a.relay == "" {
		return a.resolve(ctx)
	}
	at := []address{a}
	if a.host == "" {
		at = b.lookup(a.relay)
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
