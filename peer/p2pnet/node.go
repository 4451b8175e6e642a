package p2pnet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// node is what all parts of a transport share: the identity of this process, its libp2p
// host, and whether it is closing.
type node struct {
	config Config
	key    ed25519.PrivateKey
	id     peer.ID
	self   transport.PeerID
	log    *zap.Logger

	host    host.Host
	swarm   *swarm.Swarm
	refused *counts
	book    book

	// ending is cancelled by Close, to cut short what is under way.
	ending context.Context
	end    context.CancelFunc
	gate   gate
}

// book holds the addresses at which peers may be reached; the slices are not changed.
// libp2p's own store is not used for it: there, addresses expire and can only be added to.
type book = *lru.Cache[peer.ID, []address]

const (
	// maxBookPeers is how many peers addresses are remembered of; beyond it the
	// one learned longest ago is forgotten.
	maxBookPeers = 8192
	// maxBookAddresses is how many addresses of one peer are remembered.
	maxBookAddresses = 8
)

func newBook() book {
	peers, _ := lru.New[peer.ID, []address](maxBookPeers) // fails for sizes below one only
	return peers
}

// Self is the id of the local peer: the text of its libp2p peer id.
func (n *node) Self() transport.PeerID { return n.self }

// Sign signs a message with the peer's key.
func (n *node) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(n.key, inDomain(message)), nil
}

// Verify tells whether signature is peer's signature of message.
func (n *node) Verify(peer transport.PeerID, message, signature []byte) bool {
	id, err := parsePeer(peer)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return false
	}
	public, err := publicKey(id)
	if err != nil {
		return false
	}
	return ed25519.Verify(public, inDomain(message), signature)
}

// lookup returns the addresses that were learned of a peer.
func (n *node) lookup(id peer.ID) []address {
	addresses, _ := n.book.Peek(id)
	return addresses
}

// admitted is the reason why this process does not connect with a peer, or nil.
func (n *node) admitted(id peer.ID) error {
	if err := n.config.Admit(transport.PeerID(id.String())); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrNotAdmitted, err)
	}
	return nil
}

// begin registers an operation, for which Close waits, and returns a context
// that ends after limit or when the transport closes.
func (n *node) begin(ctx context.Context, limit time.Duration) (context.Context, func(), error) {
	if !n.gate.enter() {
		return nil, nil, transport.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(n.ending, cancel)
	return ctx, func() {
		stop()
		cancel()
		n.gate.leave()
	}, nil
}

// whyNot returns err, or transport.ErrClosed if the operation failed because the transport closed.
func (n *node) whyNot(ctx context.Context, err error) error {
	if n.ending.Err() != nil {
		return fmt.Errorf("%w: %w", transport.ErrClosed, err)
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// gate counts what runs inside a transport, so that Close can wait for it.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// enter counts the caller in until leave, unless the gate is shut.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) wait() { g.inside.Wait() }
