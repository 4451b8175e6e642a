package peer

import (
	"context"
	"fmt"
	"time"

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
	now, last := int64(time.Since(p.started)), p.compared.Load()
	if last != 0 && now-last < int64(compareEvery) || !p.compared.CompareAndSwap(last, max(now, 1)) {
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
