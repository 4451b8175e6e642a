package replica

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Responder is the passive side of an exchange: its lanes answer each slice's
// code with the difference, and add that difference to their own slice only once
// the partner has acknowledged applying it. It is reused from one exchange to the
// next. Lanes may be driven at the same time, each by one goroutine.
type Responder struct {
	replica *Replica
	ledger  *Ledger
	terms   Terms
	weight  float64
	taken   bitmap       // parts whose code has come, on whatever lane
	due     atomic.Int32 // parts that the exchange has: its slices, and what has to come again
	applied atomic.Int32 // of these, those applied at both sides

	ranging bool         // this side has ranges to tell
	told    int          // slices whose ranges have been told
	unknown blockSets    // blocks whose range is told as unknown
	asked   blockSets    // blocks that are to come again; guarded by their slice's lock
	failed  atomic.Int32 // blocks that failed
	halved  atomic.Int32 // blocks asked for as halves
	moves   moves
	lanes   []*ResponderLane
}

// NewResponder makes a responder for exchanges of a replica, which leaves in the
// ledger what is in doubt when an exchange breaks off.
func NewResponder(r *Replica, l *Ledger) *Responder { return &Responder{replica: r, ledger: l} }

// Begin starts an exchange. The one before must have ended.
func (p *Responder) Begin(terms Terms) {
	p.terms = terms.within()
	p.weight = p.terms.weight()
	p.taken = p.taken.sized(attempts * len(p.replica.shared))
	p.due.Store(int32(len(p.replica.shared)))
	p.applied.Store(0)
	p.beginRanges()
	for len(p.lanes) < p.terms.Lanes {
		p.lanes = append(p.lanes, &ResponderLane{of: p, scratch: make(tensor.Vector, p.replica.longest)})
	}
	for _, lane := range p.lanes {
		lane.begin()
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (p *Responder) Lane(i int) *ResponderLane { return p.lanes[i] }

// Lanes and Window are the numbers agreed: what was asked for, within bounds.
func (p *Responder) Lanes() int  { return p.terms.Lanes }
func (p *Responder) Window() int { return p.terms.Window }

// Done tells whether every slice has been applied at both sides, and what had to come
// again too.
func (p *Responder) Done() bool { return p.applied.Load() == p.due.Load() }

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
	p.replica.pulls.add(p.terms.Partner, &p.moves)
	return inDoubt
}

// Again is the number of blocks that failed and had to come again.
func (p *Responder) Again() int { return int(p.failed.Load()) }

// Distance is the distance between the two models that the slices showed. It is
// complete once Done.
func (p *Responder) Distance() float64 {
	squared := 0.0
	for _, lane := range p.lanes[:p.terms.Lanes] {
		squared += lane.squared
	}
	return math.Sqrt(squared)
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

// take notes that a part's code has come. It reports false if it had before.
func (p *Responder) take(unit int) bool {
	bit := uint64(1) << (unit % 64)
	return atomic.OrUint64(&p.taken[unit/64], bit)&bit == 0
}

// came tells whether a part's code has come.
func (p *Responder) came(unit int) bool {
	return atomic.LoadUint64(&p.taken[unit/64])>>(unit%64)&1 == 1
}

const (
	// maxHalves is the share of an exchange's blocks, and leastHalves the number in
	// any case, that this side asks for as halves after they failed twice: a partner
	// whose blocks fail on purpose is not to make an exchange five times as long.
	maxHalves   = 1.0 / 8
	leastHalves = 16
	// reachSlack is how many times farther than this side's own range of a block, or
	// the bound of its slice, a partner may take the models to be apart there. One
	// that chooses a lattice that coarse tells little.
	reachSlack = 16
)

// affords tells whether so many more blocks may come as halves.
func (p *Responder) affords(blocks int) bool {
	most := max(leastHalves, int(maxHalves*float64(p.replica.blocks)))
	return int(p.halved.Add(int32(blocks))) <= most
}

// beginRanges begins an exchange in which, if a codec needs it, ranges are told.
func (p *Responder) beginRanges() {
	p.ranging, p.told = latticed(p.terms.Codecs), 0
	p.failed.Store(0)
	p.halved.Store(0)
	if p.ranging {
		p.unknown.sized(p.replica)
		p.asked.sized(p.replica)
	}
}

// Ranges writes into frame, whose memory it reuses, the next of the frames that tell
// the partner this side's ranges. ok is false if there is none left, or none is
// needed. They are to be sent, all of them, on the first lane before anything else.
func (p *Responder) Ranges(frame []byte) (_ []byte, ok bool, err error) {
	r := p.replica
	if !p.ranging || p.told == len(r.shared) {
		return frame, false, nil
	}
	first := p.told
	frame = wire.Reserve(frame)
	for ; p.told < len(r.shared); p.told++ {
		blocks := coding.Blocks(r.lengthOf(p.told))
		if len(frame)+blocks > wire.HeaderSize+maxRanges {
			break
		}
		at := len(frame)
		frame = extend(frame, blocks)
		p.tell(p.told, frame[at:])
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
	for i, r := range s.ranges {
		if codes[i] = coding.RangeCode(r); codes[i] == 0 {
			unknown.Put(i)
		}
	}
}
