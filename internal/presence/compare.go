package presence

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Two peers whose views differ may each take the other for passive, or for a neighbour that
// it is not. The asked peer knows its own role: it sends its record with the refusal, so
// that one round trip corrects what gossip would correct later. docs/design/014 gives the
// reasons.

const (
	// compareEvery is the least time between two comparisons of memberships after refusals:
	// a comparison moves the records of all members.
	compareEvery = time.Second
	// compareMost is the longest pause between comparisons with a member with which earlier
	// ones changed nothing; maxCompared bounds the members remembered.
	compareMost = time.Minute
	maxCompared = 256
	// compareTimeout bounds one.
	compareTimeout = 10 * time.Second
)

// comparisons records when memberships were compared, and with whom. The zero value is ready.
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

// begin notes a comparison with a member, and returns false if it is too early. The pause
// grows for a member that still refuses after comparisons.
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
