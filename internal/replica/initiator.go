package replica

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// Initiator is the active side of an exchange: its lanes send the codes of its
// slices and apply the differences that come back. It is reused from one exchange
// to the next. Lanes may be driven at the same time; of one lane, Code and Ack by
// one goroutine and Diff by another.
type Initiator struct {
	side
	record *record
	order  order
	turns  turns
	theirs []byte // the partner's ranges, as codes, by block
	lanes  []*InitiatorLane
}

// Begin starts an exchange. The one before must have ended.
func (a *Initiator) Begin(terms Terms) {
	a.begin(terms)
	a.record = a.ledger.open(a.terms, attempts*len(a.replica.shared))
	a.order.set(a.replica, a.terms)
	a.theirs = a.theirs[:0]
	a.turns.begin(len(a.replica.shared))
	for n := len(a.lanes); n < a.terms.Lanes; n++ {
		a.lanes = append(a.lanes, &InitiatorLane{of: a, number: n})
	}
	for _, lane := range a.lanes {
		lane.begin()
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (a *Initiator) Lane(i int) *InitiatorLane { return a.lanes[i] }

// End is the end of the exchange at this side. Clean says that the partner is
// known to have applied every slice that was sent too; if it is not, the partner may ask, and
// the ledger keeps what it takes to answer. No lane may be in use.
func (a *Initiator) End(clean bool) {
	if a.record != nil {
		a.moves.end(a.replica, a.terms.Partner)
		if a.terms.Partial && a.Done() {
			for _, s := range a.replica.lockShared() {
				s.age++
			}
		}
		a.ledger.close(a.record, clean)
		a.record = nil
	}
}

// unit is the number of a part on the wire.
func (a *Initiator) unit(p *part) uint32 { return uint32(p.unit(len(a.replica.shared))) }

// Ranges takes a frame of the partner's ranges.
func (a *Initiator) Ranges(header wire.Header, codes []byte) error {
	r := a.replica
	if a.Ranged() || int(header.Slice) != a.rangesSent || header.Exchange != a.terms.Exchange || len(codes) == 0 {
		return fmt.Errorf("%d ranges from slice %d of exchange %d on, after those of %d: %w",
			len(codes), header.Slice, header.Exchange, a.rangesSent, ErrOrder)
	}
	for a.rangesSent < len(r.shared) && len(codes) > 0 {
		blocks := coding.Blocks(r.lengthOf(a.rangesSent))
		if len(codes) < blocks {
			return fmt.Errorf("%d ranges for the %d blocks of slice %d: %w", len(codes), blocks, a.rangesSent, coding.ErrSize)
		}
		a.theirs = append(a.theirs, codes[:blocks]...)
		codes = codes[blocks:]
		a.rangesSent++
	}
	if len(codes) > 0 {
		return fmt.Errorf("%d ranges beyond the last slice: %w", len(codes), coding.ErrSize)
	}
	return nil
}
