package replica

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

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
	taken   bitmap       // slices whose code has come, on whatever lane
	applied atomic.Int32 // slices applied at both sides
	lanes   []*ResponderLane
}

// NewResponder makes a responder for exchanges of a replica, which leaves in the
// ledger what is in doubt when an exchange breaks off.
func NewResponder(r *Replica, l *Ledger) *Responder { return &Responder{replica: r, ledger: l} }

// Begin starts an exchange. The one before must have ended.
func (p *Responder) Begin(terms Terms) {
	p.terms = terms.within()
	p.weight = p.terms.weight()
	p.taken = p.taken.sized(len(p.replica.shared))
	p.applied.Store(0)
	for len(p.lanes) < p.terms.Lanes {
		p.lanes = append(p.lanes, &ResponderLane{of: p, scratch: make(tensor.Vector, p.replica.sliceLen)})
	}
	for _, lane := range p.lanes {
		lane.answered, lane.applied, lane.squared = 0, 0, 0
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (p *Responder) Lane(i int) *ResponderLane { return p.lanes[i] }

// Lanes and Window are the numbers agreed: what was asked for, within bounds.
func (p *Responder) Lanes() int  { return p.terms.Lanes }
func (p *Responder) Window() int { return p.terms.Window }

// Done tells whether every slice has been applied at both sides.
func (p *Responder) Done() bool { return int(p.applied.Load()) == len(p.replica.shared) }

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
	return inDoubt
}

// Distance is the distance between the two models that the slices showed. It is
// complete once Done.
func (p *Responder) Distance() float64 {
	squared := 0.0
	for _, lane := range p.lanes[:p.terms.Lanes] {
		squared += lane.squared
	}
	return math.Sqrt(squared)
}

// take notes that a slice's code has come. It reports false if one had before.
func (p *Responder) take(slice int) bool {
	bit := uint64(1) << (slice % 64)
	return atomic.OrUint64(&p.taken[slice/64], bit)&bit == 0
}

// ResponderLane is one stream's part of an exchange at the passive side.
type ResponderLane struct {
	of       *Responder
	answered int                // frames answered
	applied  int                // of these, how many have been applied at both sides
	ring     [MaxWindow]pending // of which as many are in use as the window has
	scratch  tensor.Vector
	squared  float64
}

// pending is the difference in the i-th frame of the lane, which is kept until it has
// been applied.
func (l *ResponderLane) pending(i int) *pending { return &l.ring[i%l.of.terms.Window] }

// pending is a difference that has been sent and awaits its acknowledgement: the
// frame as it was sent, which is what the partner decodes too.
type pending struct {
	slice int
	frame []byte
	norm  float64 // of the difference as the frame codes it; the ledger measures it
}

// code is the codec's part of the frame.
func (w *pending) code() []byte { return w.frame[wire.HeaderSize+wire.InfoSize:] }

// Code answers the code of a slice with the DIFF frame, which is valid, and must
// not be changed, until the lane's next call. First it applies what the header
// acknowledges.
func (l *ResponderLane) Code(header wire.Header, payload []byte) ([]byte, error) {
	if err := l.Ack(header); err != nil {
		return nil, err
	}
	n, index := len(l.of.replica.shared), int(header.Slice)
	if l.answered-l.applied >= l.of.terms.Window {
		return nil, fmt.Errorf("code of slice %d with %d unacknowledged: %w", header.Slice, l.answered-l.applied, ErrWindow)
	}
	if uint64(header.Slice) >= uint64(n) || !l.of.take(index) {
		return nil, fmt.Errorf("code of slice %d of %d, or for the second time: %w", header.Slice, n, ErrOrder)
	}
	info, code, err := wire.SplitCode(payload)
	if err != nil {
		return nil, fmt.Errorf("code of slice %d: %w", index, err)
	}
	w := l.pending(l.answered)
	w.slice = index
	if err := l.difference(w, code, float64(info.Bound)); err != nil {
		return nil, fmt.Errorf("code of slice %d: %w", index, err)
	}
	reply := wire.Header{Type: wire.TypeDiff, Exchange: l.of.terms.Exchange, Slice: header.Slice}
	if err := wire.Seal(w.frame, reply); err != nil {
		return nil, fmt.Errorf("difference of slice %d: %w", index, err)
	}
	l.answered++
	return w.frame, nil
}

// difference makes the frame of w: how far, weighted and clipped, the partner's
// slice is from this side's.
func (l *ResponderLane) difference(w *pending, code []byte, theirLimit float64) error {
	r, coder := l.of.replica, l.of.terms.Codec.Diff
	s := &r.slices[r.shared[w.slice]]
	w.frame = extend(wire.Reserve(w.frame), wire.InfoSize+coder.Size(s.length))
	diff, inPlace := drawn(coder, w.code(), l.scratch[:s.length])
	s.Lock()
	distance, err := l.weigh(s, diff, code, theirLimit)
	s.Unlock()
	if err != nil {
		return err
	}
	if !inPlace {
		coder.Encode(w.code(), diff)
	}
	wire.AppendDiffInfo(w.frame[:wire.HeaderSize], wire.DiffInfo{SquaredDistance: distance * distance})
	return nil
}

// weigh fills diff with the share that both sides move by of the difference between
// the partner's code and the own slice. It returns their distance. The caller holds
// the slice's lock.
func (l *ResponderLane) weigh(s *slice, diff tensor.Vector, code []byte, theirLimit float64) (distance float64, err error) {
	r := l.of.replica
	own := r.of(s)
	theirs, err := decoded(l.of.terms.Codec.Code, code, l.scratch[:s.length], own)
	if err != nil {
		return 0, err
	}
	distance = math.Sqrt(tensor.ScaledDistance(diff, roundedDown(l.of.weight), theirs, own))
	if absurd(distance, own) {
		if !tensor.Finite(own) {
			return 0, ErrDiverged
		}
		return 0, fmt.Errorf("distance %g: %w", distance, ErrAbsurd)
	}
	limit := min(r.limit(s), theirLimit)
	if distance > limit {
		tensor.Scale(diff, roundedDown(limit/distance))
	}
	believed := r.remember(s, distance, limit)
	l.squared += believed * believed
	return distance, nil
}

// roundedDown is a share as float32, rounded so that what is left of a difference is
// not longer than allowed.
func roundedDown(share float64) float32 {
	rounded := float32(share)
	if float64(rounded) > share {
		rounded = math.Nextafter32(rounded, 0)
	}
	return rounded
}

// Ack applies the pending differences that the partner has acknowledged.
func (l *ResponderLane) Ack(header wire.Header) error {
	if header.Exchange != l.of.terms.Exchange {
		return fmt.Errorf("frame of exchange %d in exchange %d: %w", header.Exchange, l.of.terms.Exchange, ErrOrder)
	}
	if uint64(header.Ack) > uint64(l.answered) || int(header.Ack) < l.applied {
		return fmt.Errorf("acknowledgement of %d slices after %d of %d: %w", header.Ack, l.applied, l.answered, ErrOrder)
	}
	for ; l.applied < int(header.Ack); l.applied++ {
		w := l.pending(l.applied)
		if err := l.of.replica.commit(l.of.terms.Codec.Diff, w.slice, w.code(), l.scratch); err != nil {
			return fmt.Errorf("applying the difference of slice %d: %w", w.slice, err)
		}
		l.of.applied.Add(1)
	}
	return nil
}

// Idle tells whether the lane has no difference that awaits its acknowledgement.
func (l *ResponderLane) Idle() bool { return l.applied == l.answered }
