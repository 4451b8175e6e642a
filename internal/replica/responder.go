package replica

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
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
func (p *Responder) codec(number uint8) (quant.Codec, error) {
	codec, known := quant.ByID(quant.ID(number))
	if !known || codec.ID != quant.Raw && !slices.Contains(p.terms.Codecs, codec.ID) {
		return quant.Codec{}, fmt.Errorf("codec %d: %w", number, ErrCodec)
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

// ResponderLane is one stream's part of an exchange at the passive side.
type ResponderLane struct {
	of       *Responder
	answered int                // frames answered
	applied  int                // of these, how many have been applied at both sides
	ring     [MaxWindow]pending // of which as many are in use as the window has
	spare    [][]byte           // frames of parts that have been applied, at most MaxWindow
	scratch  tensor.Vector
	seen     [maxBlocks]float32 // of the blocks of a slice
	limits   [maxBlocks]float32
	squared  float64
}

func (l *ResponderLane) begin() {
	l.answered, l.applied, l.squared = 0, 0, 0
	for i := range l.ring { // an exchange that broke off has left some
		l.release(&l.ring[i])
	}
}

// release keeps the frame of a part that needs it no more for another. So there are
// as many frames as have been in flight at once, whatever the window allows.
func (l *ResponderLane) release(w *pending) {
	if w.frame != nil {
		l.spare = append(l.spare, w.frame)
		w.frame = nil
	}
}

// spareFrame is memory for a frame, or nil if there is none.
func (l *ResponderLane) spareFrame() (frame []byte) {
	if last := len(l.spare) - 1; last >= 0 {
		frame, l.spare = l.spare[last], l.spare[:last]
	}
	return frame
}

// pending is the difference in the i-th frame of the lane, which is kept until it has
// been applied.
func (l *ResponderLane) pending(i int) *pending { return &l.ring[i%l.of.terms.Window] }

// pending is a difference that has been sent and awaits its acknowledgement: the
// frame as it was sent, which is what the partner decodes too.
type pending struct {
	part
	unit  int
	codec quant.Codec
	frame []byte
	head  int     // where the code begins in the frame
	norm  float64 // of the difference as the frame codes it; the ledger measures it
}

// code is the codec's part of the frame.
func (w *pending) code() []byte { return w.frame[w.head:] }

// Code answers the code of a slice with the DIFF frame, which is valid, and must
// not be changed, until the lane's next call. First it applies what the header
// acknowledges.
func (l *ResponderLane) Code(header wire.Header, payload []byte) ([]byte, error) {
	if err := l.Ack(header); err != nil {
		return nil, err
	}
	n, unit := len(l.of.replica.shared), int(header.Slice)
	if l.answered-l.applied >= l.of.terms.Window {
		return nil, fmt.Errorf("code of slice %d with %d unacknowledged: %w", header.Slice, l.answered-l.applied, ErrWindow)
	}
	if uint64(header.Slice) >= uint64(attempts*n) || unit >= n && !l.of.came(unit-n) || !l.of.take(unit) {
		return nil, fmt.Errorf("code of slice %d of %d, out of turn or for the second time: %w", header.Slice, n, ErrOrder)
	}
	w := l.pending(l.answered)
	w.frame = l.spareFrame()
	w.unit, w.part = unit, part{slice: unit % n, attempt: unit / n}
	if err := l.answer(w, payload); err != nil {
		return nil, fmt.Errorf("code of slice %d: %w", unit, err)
	}
	reply := wire.Header{Type: wire.TypeDiff, Exchange: l.of.terms.Exchange, Slice: header.Slice}
	if err := wire.Seal(w.frame, reply); err != nil {
		return nil, fmt.Errorf("difference of slice %d: %w", unit, err)
	}
	l.answered++
	return w.frame, nil
}

// answer makes the frame of w: how far, weighted and clipped, the partner's part is
// from this side's.
func (l *ResponderLane) answer(w *pending, payload []byte) error {
	info, code, err := wire.SplitCode(payload)
	if err != nil {
		return err
	}
	if w.codec, err = l.of.codec(info.Codec); err != nil {
		return err
	}
	if w.codec.Lattice != (quant.Lattice{}) {
		return l.answerBlocks(w, code, float64(info.Bound))
	}
	if w.attempt > 0 {
		return fmt.Errorf("%s has no blocks to send again: %w", w.codec.Name, ErrBlocks)
	}
	return l.difference(w, code, float64(info.Bound))
}

// difference answers a code that has no blocks.
func (l *ResponderLane) difference(w *pending, code []byte, theirLimit float64) error {
	r, coder := l.of.replica, w.codec.Diff
	s := &r.slices[r.shared[w.slice]]
	w.head = wire.HeaderSize + wire.InfoSize
	w.frame = extend(wire.Reserve(w.frame), wire.InfoSize+coder.Size(s.length))
	diff, inPlace := drawn(coder, w.code(), l.scratch[:s.length])
	s.Lock()
	distance, limit, err := l.weigh(s, w.codec.Code, diff, code, theirLimit)
	s.Unlock()
	if err != nil {
		return err
	}
	if !inPlace {
		w.codec.Fit(diff, l.of.weight*min(distance, limit))
		coder.Encode(w.code(), diff)
		bounded(coder, w.code(), diff, distance, limit, l.of.weight)
	}
	wire.AppendDiffInfo(w.frame[:wire.HeaderSize], wire.DiffInfo{SquaredDistance: distance * distance})
	return nil
}

// bounded makes the code of a difference shorter if rounding may have made it longer than
// the share of the limit that both sides move by.
func bounded(coder quant.Coder, code []byte, diff tensor.Vector, distance, limit, weight float64) {
	switch c := coder.(type) {
	case quant.Steps:
		if distance*c.Stretch() <= limit {
			return
		}
		if norm := math.Sqrt(c.SquaredNorm(code, len(diff))); norm > weight*limit {
			c.Shrink(code, len(diff), weight*limit/norm)
		}
	case quant.Shortener:
		if rounding := math.Sqrt(float64(len(diff))) * c.Rounding(); rounding > roundingSlack*weight*limit {
			c.Shorten(code, diff)
		}
	}
}

// weigh fills diff with the share that both sides move by of the difference between
// the partner's code and the own slice. It returns their distance, and how far of it
// they may move. The caller holds the slice's lock.
func (l *ResponderLane) weigh(s *slice, coder quant.Coder, diff tensor.Vector, code []byte, theirLimit float64) (distance, limit float64, err error) {
	r := l.of.replica
	own := r.of(s)
	theirs, err := decoded(coder, code, l.scratch[:s.length], own)
	if err != nil {
		return 0, 0, err
	}
	distance = math.Sqrt(tensor.ScaledDistance(diff, roundedDown(l.of.weight), theirs, own))
	if err := sane(distance, own); err != nil {
		return 0, 0, err
	}
	limit = min(r.limit(s), theirLimit)
	if distance > limit {
		tensor.Scale(diff, roundedDown(limit/distance))
	}
	believed := r.remember(s, l.of.terms.Partner, distance, limit)
	l.squared += believed * believed
	return distance, limit, nil
}

// sane is ErrAbsurd if a distance from the slice own cannot be that of a model, and
// ErrDiverged if that is because the slice is none.
func sane(distance float64, own tensor.Vector) error {
	switch {
	case !absurd(distance, own):
		return nil
	case !tensor.Finite(own):
		return ErrDiverged
	}
	return fmt.Errorf("distance %g: %w", distance, ErrAbsurd)
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
		if err := l.of.replica.commit(w, l.scratch, &l.of.moves); err != nil {
			return fmt.Errorf("applying the difference of slice %d: %w", w.unit, err)
		}
		l.release(w)
		l.of.applied.Add(1)
	}
	return nil
}

// Idle tells whether the lane has no difference that awaits its acknowledgement.
func (l *ResponderLane) Idle() bool { return l.applied == l.answered }
