package rows

import (
	"context"
	"sync"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Bounds of what waits to be sent: to one taker, which is two of the largest answers; to all takers, beside leastUnsent
// for each.
const (
	maxUnsent    = 16 << 20
	maxAllUnsent = 8 * maxUnsent
	leastUnsent  = wire.MaxRowsData
)

// unsent counts the bytes of answers that are made for takers, and not sent yet. Safe for concurrent use.
type unsent struct {
	mu  sync.Mutex
	of  map[transport.PeerID]int
	all int
	// less is closed, and made anew, when there are fewer.
	less chan struct{}
}

func newUnsent() *unsent {
	return &unsent{of: map[transport.PeerID]int{}, less: make(chan struct{})}
}

// reserve adds what an answer to a taker may have, at most so many bytes, and returns them. It waits until that is maxAnswer or more.
// A taker for which nothing waits is given leastUnsent at once: others that read nothing keep rows from nobody.
func (u *unsent) reserve(ctx context.Context, taker transport.PeerID, most int) (bytes int, err error) {
	for {
		u.mu.Lock()
		mine, less := u.of[taker], u.less
		room, least := min(maxUnsent-mine, maxAllUnsent-u.all), maxAnswer
		if mine == 0 {
			room, least = max(room, leastUnsent), leastUnsent
		}
		if bytes = min(most, room); room >= least {
			u.change(taker, bytes)
		}
		u.mu.Unlock()
		if room >= least {
			return bytes, nil
		}
		select {
		case <-less:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// add adds bytes to those of a taker: fewer than 0 when an answer is sent, or is smaller than it might have been.
func (u *unsent) add(taker transport.PeerID, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.change(taker, bytes)
}

// change is add with the lock held.
func (u *unsent) change(taker transport.PeerID, bytes int) {
	u.all += bytes
	if u.of[taker] += bytes; u.of[taker] == 0 {
		delete(u.of, taker)
	}
	if bytes < 0 {
		close(u.less)
		u.less = make(chan struct{})
	}
}
