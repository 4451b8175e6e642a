package p2pnet

import (
	"context"
	"sync"

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
	mu    sync.Mutex
	peers map[peer.ID]entry
	turn  uint64
}

type entry struct {
	addresses []address
	turn      uint64
}

func newBook() *book { return &book{peers: make(map[peer.ID]entry)} }

// learn replaces what is known of a peer. It keeps the slice.
func (b *book) learn(id peer.ID, addresses []address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.peers[id]; !ok && len(b.peers) >= maxBookPeers {
		b.forgetOldest()
	}
	b.turn++
	b.peers[id] = entry{addresses: addresses, turn: b.turn}
}

func (b *book) forgetOldest() {
	var oldest peer.ID
	least := b.turn + 1
	for id, e := range b.peers {
		if e.turn < least {
			oldest, least = id, e.turn
		}
	}
	delete(b.peers, oldest)
}

// lookup returns what is known of a peer; the slice must not be changed.
func (b *book) lookup(id peer.ID) []address {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peers[id].addresses
}

// knows tells whether anything was learned of a peer.
func (b *book) knows(id peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.peers[id]
	return known
}

// Learn remembers where a peer may be reached, replacing what was learned
// before. It takes every form that Connect takes. Addresses that are malformed,
// or that name another peer, are left out; so is everything about an id that is
// malformed.
func (t *Transport) Learn(peer seam.PeerID, addresses []string) {
	id, err := parsePeer(peer)
	if err != nil || id == t.id {
		t.log.Debug("ignored addresses", zap.String("peer", string(peer)), zap.Error(err))
		return
	}
	var good []address
	for _, text := range addresses {
		if len(good) == maxBookAddresses {
			break
		}
		a, err := parseAddress(text)
		if err != nil || (a.id != "" && a.id != id) {
			t.log.Debug("ignored an address", zap.String("peer", string(peer)), zap.String("address", text), zap.Error(err))
			continue
		}
		good = append(good, a)
	}
	t.book.learn(id, good)
}

// whereabouts resolves what the book knows of a peer. An empty answer is none:
// libp2p may still know where a peer was that connected to us.
func (t *Transport) whereabouts(ctx context.Context, id peer.ID) []ma.Multiaddr {
	var found []ma.Multiaddr
	for _, a := range t.book.lookup(id) {
		resolved, err := t.resolve(ctx, a)
		if err != nil {
			t.log.Debug("cannot resolve an address", zap.Stringer("peer", id), zap.Stringer("address", a), zap.Error(err))
			continue
		}
		found = append(found, resolved...)
	}
	return found
}
