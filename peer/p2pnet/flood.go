package p2pnet

import (
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// What one neighbour may pass on: gossipsub remembers each message for seenFor, so
// the rate bounds memory too.
const (
	messagesPerSecond = 64
	messageBurst      = 512
)

var errFlood = errors.New("more messages than a neighbour may pass on")

// allowance is how many messages each neighbour may still pass on. It outlasts the
// connection, or who connects anew would have a new one; of more than maxAdmitted
// neighbours those heard least lately are forgotten.
type allowance struct {
	left *lru.Cache[peer.ID, *rate.Limiter]
}

func newAllowance() (*allowance, error) {
	left, err := lru.New[peer.ID, *rate.Limiter](maxAdmitted)
	return &allowance{left}, err
}

// inspect is gossipsub's, for each RPC before anything in it is looked at.
func (a *allowance) inspect(from peer.ID, rpc *pubsub.RPC) error {
	if n := len(rpc.GetPublish()); n > 0 && !a.take(from, n, time.Now()) {
		return errFlood
	}
	return nil
}

func (a *allowance) take(from peer.ID, n int, now time.Time) bool {
	left, known := a.left.Get(from)
	if !known {
		left = rate.NewLimiter(messagesPerSecond, messageBurst)
		if earlier, known, _ := a.left.PeekOrAdd(from, left); known {
			left = earlier
		}
	}
	return left.AllowN(now, n)
}
