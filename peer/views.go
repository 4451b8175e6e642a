package peer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
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

// tellRecord hands this peer's record to a partner that takes it for passive.
func (p *Peer) tellRecord(t *talk, exchange uint64) {
	courier, ok := p.membership.(seam.Courier)
	if !ok {
		return
	}
	signed := courier.Signed()
	if len(signed) == 0 || len(signed) > wire.MaxSigned {
		return
	}
	if err := say(t, exchange, wire.Record{View: p.counters.view.Load(), Signed: signed}); err != nil {
		p.log.Debug("telling a partner this peer's role", zap.Error(err)) // the refusal that follows fails too
	}
}

// hearRecord takes what a partner says of itself, and has the view corrected before
// the machine hears that it was refused. If that was known already, the two see
// other members, and compare what they know.
func (p *Peer) hearRecord(partner seam.PeerID, payload []byte) error {
	var record wire.Record
	if err := record.Decode(payload); err != nil {
		return err
	}
	courier, ok := p.membership.(seam.Courier)
	if !ok {
		return nil
	}
	news, err := courier.Heard(partner, record.Signed)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, wire.ErrMessage)
	case news:
		p.notify(notice{corrected: true})
	case record.View != p.counters.view.Load():
		p.compare(courier, partner)
	}
	return nil
}

// makeKnown has a member that does not know this peer hear of it.
func (p *Peer) makeKnown(to seam.PeerID) {
	if courier, ok := p.membership.(seam.Courier); ok {
		p.compare(courier, to)
	}
}

// compare begins a comparison with a member whose view differs, unless one began
// a moment ago.
func (p *Peer) compare(courier seam.Courier, partner seam.PeerID) {
	if !p.comparisons.begin(partner, time.Now()) {
		return
	}
	p.transfers.spawn(func() {
		ctx, cancel := context.WithTimeout(p.exchanges, compareTimeout)
		defer cancel()
		if err := courier.Compare(ctx, partner); err != nil {
			p.log.Debug("comparing memberships with a member that sees other roles", zap.String("peer", string(partner)), zap.Error(err))
		}
	})
}

// comparisons remember when memberships were compared with whom. The zero value is ready.
type comparisons struct {
	mu   sync.Mutex
	last time.Time // with anybody
	with *simplelru.LRU[seam.PeerID, comparison]
}

// comparison is the last one with a member.
type comparison struct {
	at  time.Time
	gap time.Duration // until the next may begin
}

// begin notes one with a member, and reports false if it is too early. A member with whom
// one leads to the next, since it refuses whatever it has been told, waits longer and longer.
func (c *comparisons) begin(partner seam.PeerID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.with == nil {
		c.with, _ = simplelru.NewLRU[seam.PeerID, comparison](maxCompared, nil) // fails of sizes that are not positive
	}
	before, again := c.with.Get(partner)
	if now.Sub(c.last) < compareEvery || again && now.Sub(before.at) < before.gap {
		return false
	}
	next := comparison{at: now, gap: compareEvery}
	if again && now.Sub(before.at) < 2*before.gap {
		next.gap = min(2*before.gap, compareMost)
	}
	c.last = now
	c.with.Add(partner, next)
	return true
}
