package p2pnet

import (
	"errors"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

// What one neighbour may pass on: gossipsub remembers each message for seenFor, so
// the rate bounds memory too.
const (
	messagesPerSecond = 64
	messageBurst      = 512
)

var errFlood = errors.New("more messages than a neighbour may pass on")

// allowance is how many messages each neighbour may still pass on. The zero value is
// ready.
type allowance struct {
	mu   sync.Mutex
	left map[peer.ID]bucket
}

// bucket holds tokens as they were at a moment.
type bucket struct {
	tokens float64
	at     time.Time
}

// inspect is gossipsub's, for each RPC before anything in it is looked at.
func (a *allowance) inspect(from peer.ID, rpc *pubsub.RPC) error {
	if n := len(rpc.GetPublish()); n > 0 && !a.take(from, n, time.Now()) {
		return errFlood
	}
	return nil
}

func (a *allowance) take(from peer.ID, n int, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, known := a.left[from]
	if !known {
		if len(a.left) >= maxAdmitted {
			return false
		}
		if a.left == nil {
			a.left = make(map[peer.ID]bucket)
		}
		b = bucket{messageBurst, now}
	}
	b.tokens = min(messageBurst, b.tokens+now.Sub(b.at).Seconds()*messagesPerSecond)
	b.at = now
	enough := b.tokens >= float64(n)
	if enough {
		b.tokens -= float64(n)
	}
	a.left[from] = b
	return enough
}

// forget drops the account of a neighbour that is gone.
func (a *allowance) forget(from peer.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.left, from)
}
