package replica

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Initiator is the active side of an exchange: its lanes send the codes of its
// slices and apply the differences that come back. It is reused from one exchange
// to the next. Lanes may be driven at the same time; of one lane, Code and Ack by
// one goroutine and Diff by another.
type Initiator struct {
	replica *Replica
	ledger  *Ledger
	terms   Terms
	weight  float64
	record  *record
	order   order

	failed  atomic.Int32 // blocks that failed
	ranging bool         // the partner has ranges to tell
	heard   int          // slices whose ranges have been told
	theirs  []byte       // the partner's ranges, as codes, by block

	claimed atomic.Int32 // slices that a lane has taken up
	due     atomic.Int32 // parts that the exchange has: its slices, and what has to be sent again
	applied atomic.Int32 // of these, those whose difference has been applied
	moves   moves
	lanes   []*InitiatorLane
}

// NewInitiator makes an initiator for exchanges of a replica, which keeps in the
// ledger what it has applied.
func NewInitiator(r *Replica, l *Ledger) *Initiator {
	return &Initiator{replica: r, ledger: l}
}

// Begin starts an exchange. The one before must have ended.
func (a *Initiator) Begin(terms Terms) {
	a.terms = terms.within()
	a.weight = a.terms.weight()
	a.record = a.ledger.open(a.terms, attempts*len(a.replica.shared))
	a.order.set(a.replica, a.terms)
	a.ranging, a.heard, a.theirs = latticed(a.terms.Codecs), 0, a.theirs[:0]
	a.failed.Store(0)
	a.claimed.Store(0)
	a.due.Store(int32(len(a.replica.shared)))
	a.applied.Store(0)
	for len(a.lanes) < a.terms.Lanes {
		a.lanes = append(a.lanes, &InitiatorLane{of: a, scratch: make(tensor.Vector, a.replica.longest)})
	}
	for _, lane := range a.lanes {
		lane.begin()
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (a *Initiator) Lane(i int) *InitiatorLane { return a.lanes[i] }

// Lanes is the number of lanes agreed.
func (a *Initiator) Lanes() int { return a.terms.Lanes }

// Done tells whether every slice has been applied at this side, and what had to be
// sent again too.
func (a *Initiator) Done() bool { return a.applied.Load() == a.due.Load() }

// Again is the number of blocks that failed and had to be sent again.
func (a *Initiator) Again() int { return int(a.failed.Load()) }

// Applied is the number of slices applied at this side; one that was sent again counts
// again.
func (a *Initiator) Applied() int { return int(a.applied.Load()) }

// End is the end of the exchange at this side. Clean says that the partner is
// known to have applied every slice too; if it is not, the partner may ask, and
// the ledger keeps what it takes to answer. No lane may be in use.
func (a *Initiator) End(clean bool) {
	if a.record != nil {
		a.replica.pulls.add(a.terms.Partner, &a.moves)
		a.ledger.close(a.record, clean)
		a.record = nil
	}
}

// Distance is the distance between the two models that the slices showed. It is
// complete once Done. Of what a partner claims, no more is believed than the bound
// lets into its window.
func (a *Initiator) Distance() float64 {
	squared := 0.0
	for _, lane := range a.lanes[:a.terms.Lanes] {
		squared += lane.squared
	}
	return math.Sqrt(squared)
}

// claim takes up the next slice for a lane, and its turn. It reports false if none is
// left.
func (a *Initiator) claim() (slice, turn int, ok bool) {
	n := len(a.replica.shared)
	for {
		taken := a.claimed.Load()
		if int(taken) == n {
			return 0, 0, false
		}
		if a.claimed.CompareAndSwap(taken, taken+1) {
			return a.order.at(int(taken)), int(taken), true
		}
	}
}

// unit is the number of a part on the wire.
func (a *Initiator) unit(p *part) uint32 { return uint32(p.unit(len(a.replica.shared))) }

// Ranged tells whether all ranges that the partner has to tell have come: only then
// can lanes code.
func (a *Initiator) Ranged() bool { return !a.ranging || a.heard == len(a.replica.shared) }

// Ranges takes a frame of the partner's ranges.
func (a *Initiator) Ranges(header wire.Header, codes []byte) error {
	r := a.replica
	if a.Ranged() || int(header.Slice) != a.heard || header.Exchange != a.terms.Exchange || len(codes) == 0 {
		return fmt.Errorf("%d ranges from slice %d of exchange %d on, after those of %d: %w",
			len(codes), header.Slice, header.Exchange, a.heard, ErrOrder)
	}
	for a.heard < len(r.shared) && len(codes) > 0 {
		blocks := coding.Blocks(r.lengthOf(a.heard))
		if len(codes) < blocks {
			return fmt.Errorf("%d ranges for the %d blocks of slice %d: %w", len(codes), blocks, a.heard, coding.ErrSize)
		}
		a.theirs = append(a.theirs, codes[:blocks]...)
		codes = codes[blocks:]
		a.heard++
	}
	if len(codes) > 0 {
		return fmt.Errorf("%d ranges beyond the last slice: %w", len(codes), coding.ErrSize)
	}
	return nil
}
