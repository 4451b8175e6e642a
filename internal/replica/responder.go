package replica

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// Responder is the passive side of an exchange: its lanes answer each slice's
// code with the difference, and add that difference to their own slice only once
// the partner has acknowledged applying it. It is reused from one exchange to the
// next. Lanes may be driven at the same time, each by one goroutine.
type Responder struct {
	side
	taken   bitmap       // parts whose code has come, on whatever lane
	unknown blockSets    // blocks whose range is sent as unknown
	asked   blockSets    // blocks that are to come again; guarded by their slice's lock
	halved  atomic.Int32 // blocks asked for as halves
	lanes   []*ResponderLane
}

// Begin starts an exchange. The one before must have ended.
func (p *Responder) Begin(terms Terms) {
	p.begin(terms)
	p.taken = p.taken.sized(attempts * len(p.replica.shared))
	p.halved.Store(0)
	if p.ranging {
		p.unknown.sized(p.replica)
		p.asked.sized(p.replica)
	}
	for n := len(p.lanes); n < p.terms.Lanes; n++ {
		p.lanes = append(p.lanes, &ResponderLane{of: p, number: n})
	}
	for _, lane := range p.lanes {
		lane.begin()
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (p *Responder) Lane(i int) *ResponderLane { return p.lanes[i] }

// End is the end of the exchange at this side. What the partner may have applied
// and this side has not goes to the ledger; End returns the number of such slices.
// No lane may be in use.
func (p *Responder) End(now time.Duration) (inDoubt int) {
	for _, lane := range p.lanes[:min(p.terms.Lanes, len(p.lanes))] {
		inDoubt += lane.answered - lane.applied
	}
	if inDoubt > 0 {
		p.ledger.doubt(p, now)
	}
	for _, lane := range p.lanes {
		lane.answered, lane.applied = 0, 0
	}
	p.moves.end(p.replica, p.terms.Partner)
	return inDoubt
}

// leaves takes note of the slices that the partner leaves to the next exchange. All lanes say the
// same number, or none before it is known.
func (p *Responder) leaves(header wire.Header) error {
	slices, all := int64(header.Slice), int64(len(p.replica.shared))
	if slices == 0 || slices < all && p.leave(int32(slices)) {
		return nil
	}
	return fmt.Errorf("%d of %d slices left to the next exchange, after %d: %w", slices, all, p.left.Load(), ErrOrder)
}

// codec is the codec of a number, if it was accepted. Raw always is: for slices whose
// values the others cannot hold.
func (p *Responder) codec(number uint8) (coding.Codec, error) {
	codec, known := coding.ByID(coding.ID(number))
	if !known || codec.ID != coding.Raw && !slices.Contains(p.terms.Codecs, codec.ID) {
		return coding.Codec{}, fmt.Errorf("codec %d: %w", number, ErrCodec)
	}
	return codec, nil
}

const (
	// maxHalves is the share of an exchange's blocks, and leastHalves the number in any
	// case, that this side asks for as halves after they failed twice: otherwise a partner
	// could make an exchange five times as long by blocks that fail on purpose.
	maxHalves   = 1.0 / 8
	leastHalves = 16
	// reachSlack bounds the distance that a partner may assume in a block, as a multiple of
	// this side's own range, or of the slice's bound. A code of a coarser lattice would
	// carry little information.
	reachSlack = 16
)

// afford keeps those of a slice's blocks that may still come as halves, the first ones. The others are given up: with each
// exchange more models agree on the first.
func (p *Responder) afford(blocks coding.Set) {
	most := max(leastHalves, int(maxHalves*float64(p.replica.blocks)))
	wanted := blocks.Count()
	room := most - int(p.halved.Add(int32(wanted))) + wanted
	if room < wanted {
		p.halved.Add(int32(max(room, 0) - wanted))
		blocks.Limit(room)
	}
}

// Ranges writes into frame, whose memory it reuses, the next of the frames that tell
// the partner this side's ranges. ok is false if there is none left, or none is
// needed. They are to be sent, all of them, on the first lane before anything else.
func (p *Responder) Ranges(frame []byte) (_ []byte, ok bool, err error) {
	r := p.replica
	if p.Ranged() {
		return frame, false, nil
	}
	first := p.rangesSent
	frame = wire.Reserve(frame)
	for ; p.rangesSent < len(r.shared); p.rangesSent++ {
		blocks := coding.Blocks(r.lengthOf(p.rangesSent))
		if len(frame)+blocks > wire.HeaderSize+maxRanges {
			break
		}
		at := len(frame)
		frame = extend(frame, blocks)
		p.tell(p.rangesSent, frame[at:])
	}
	err = wire.Seal(frame, wire.Header{Type: wire.TypeRanges, Exchange: p.terms.Exchange, Slice: uint32(first)})
	return frame, true, err
}

// tell writes the ranges of a slice, and notes which of them are unknown.
func (p *Responder) tell(slice int, codes []byte) {
	s := &p.replica.slices[p.replica.shared[slice]]
	s.Lock()
	defer s.Unlock()
	unknown := p.unknown.of(p.replica, slice)
	for i, r := range s.expects(p.terms.Across > 0).ranges {
		if codes[i] = coding.RangeCode(r); codes[i] == 0 {
			unknown.Put(i)
		}
	}
}
