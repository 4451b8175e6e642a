package presence

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Two peers whose views differ may each take the other for passive, or for a
// neighbour that it is not. The one that is asked knows its own role: it hands its
// record out with the refusal, so that one round trip settles what gossip would
// settle in its time. docs/design/014 says why.

const (
	// compareEvery is the least time between two comparisons of memberships that
	// refusals lead to: they move all that is known of everybody.
	compareEvery = time.Second
	// compareMost is the least time between two with a member with whom one after the other
	// has changed nothing; of maxCompared members it is known.
	compareMost = time.Minute
	maxCompared = 256
	// compareTimeout bounds one.
	compareTimeout = 10 * time.Second
)

// comparisons remember when memberships were compared with whom. The zero value is ready.
type comparisons struct {
	mu   sync.Mutex
	last time.Time // with anybody
	with *simplelru.LRU[transport.PeerID, comparison]
}

// comparison is the last one with a member.
type comparison struct {
	at  time.Time
	gap time.Duration // until the next may begin
}

// begin notes one with a member, and reports false if it is too early. A member with whom
// one leads to the next, since it refuses whatever it has been told, waits longer and longer.
func (c *comparisons) begin(partner transport.PeerID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.with == nil {
		c.with, _ = simplelru.NewLRU[transport.PeerID, comparison](maxCompared, nil) // fails of sizes that are not positive
	}
	before, known := c.with.Get(partner)
	if now.Sub(c.last) < compareEvery || known && now.Sub(before.at) < before.gap {
		return false
	}
	next := comparison{at: now, gap: compareEvery}
	if known && now.Sub(before.at) < 2*before.gap {
		next.gap = min(2*before.gap, compareMost)
	}
	c.last = now
	c.with.Add(partner, next)
	return true
}
