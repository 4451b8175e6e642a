package replica

import (
	"fmt"
	"math"
	"sync/atomic"

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

	claimed atomic.Int32 // slices that a lane has taken up
	applied atomic.Int32 // slices whose difference has been applied
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
	a.record = a.ledger.open(a.terms, len(a.replica.shared))
	a.claimed.Store(0)
	a.applied.Store(0)
	for len(a.lanes) < a.terms.Lanes {
		a.lanes = append(a.lanes, &InitiatorLane{of: a, scratch: make(tensor.Vector, a.replica.sliceLen)})
	}
	for _, lane := range a.lanes {
		lane.begin()
	}
}

// Lane is the i-th lane, below the number of lanes agreed.
func (a *Initiator) Lane(i int) *InitiatorLane { return a.lanes[i] }

// Lanes is the number of lanes agreed.
func (a *Initiator) Lanes() int { return a.terms.Lanes }

// Done tells whether every slice has been applied at this side.
func (a *Initiator) Done() bool { return int(a.applied.Load()) == len(a.replica.shared) }

// Applied is the number of slices applied at this side.
func (a *Initiator) Applied() int { return int(a.applied.Load()) }

// End is the end of the exchange at this side. Clean says that the partner is
// known to have applied every slice too; if it is not, the partner may ask, and
// the ledger keeps what it takes to answer. No lane may be in use.
func (a *Initiator) End(clean bool) {
	if a.record != nil {
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

// claim takes up the next slice for a lane. It reports false if none is left.
func (a *Initiator) claim() (slice int, ok bool) {
	n := len(a.replica.shared)
	for {
		taken := a.claimed.Load()
		if int(taken) == n {
			return 0, false
		}
		if a.claimed.CompareAndSwap(taken, taken+1) {
			return (first(a.terms.Exchange, n) + int(taken)) % n, true
		}
	}
}

// InitiatorLane is one stream's part of an exchange at the active side.
type InitiatorLane struct {
	of      *Initiator
	coded   atomic.Int32 // frames sent
	applied atomic.Int32 // frames whose difference has been applied
	drained atomic.Bool  // no slice is left to send
	flight  [MaxWindow]inFlight
	scratch tensor.Vector
	squared float64 // sum of the slices' squared distances
}

// inFlight is a slice whose code has been sent, and the bound sent with it.
type inFlight struct {
	slice int
	limit float64
}

func (l *InitiatorLane) begin() {
	l.coded.Store(0)
	l.applied.Store(0)
	l.drained.Store(false)
	l.squared = 0
}

// Code writes the frame of the next slice into frame, whose memory it reuses.
// ok is false if the lane's window is full or every slice has been taken up: call
// again after the next Diff.
func (l *InitiatorLane) Code(frame []byte) (_ []byte, ok bool, err error) {
	coded, applied := l.coded.Load(), l.applied.Load()
	if int(coded-applied) >= l.of.terms.Window {
		return frame, false, nil
	}
	index, ok := l.of.claim()
	if !ok {
		l.drained.Store(true)
		return frame, false, nil
	}
	frame, limit := l.encode(index, frame)
	if math.IsNaN(limit) {
		return frame, false, fmt.Errorf("coding slice %d: %w", index, ErrDiverged)
	}
	header := wire.Header{Type: wire.TypeCode, Exchange: l.of.terms.Exchange, Slice: uint32(index), Ack: uint32(applied)}
	if err := wire.Seal(frame, header); err != nil {
		return frame, false, fmt.Errorf("coding slice %d: %w", index, err)
	}
	l.flight[coded%MaxWindow] = inFlight{index, limit}
	l.coded.Store(coded + 1)
	return frame, true, nil
}

// encode codes a slice as it is now, and gives the bound that goes with it: NaN if
// the slice turns out not to be finite.
func (l *InitiatorLane) encode(index int, frame []byte) (_ []byte, limit float64) {
	r, coder := l.of.replica, l.of.terms.Codec.Code
	s := &r.slices[r.shared[index]]
	frame = extend(wire.Reserve(frame), wire.InfoSize+coder.Size(s.length))
	s.Lock()
	coder.Encode(frame[wire.HeaderSize+wire.InfoSize:], r.of(s))
	limit = r.limit(s) // after the code, which has brought the slice into the cache
	s.Unlock()
	wire.AppendCodeInfo(frame[:wire.HeaderSize], wire.CodeInfo{Bound: announced(limit)})
	return frame, limit
}

// announced is a bound as it travels: never less than it is.
func announced(limit float64) float32 {
	bound := float32(limit)
	if float64(bound) < limit {
		bound = math.Nextafter32(bound, float32(math.Inf(1)))
	}
	return bound
}

// Diff applies the difference that the partner answered with.
func (l *InitiatorLane) Diff(header wire.Header, payload []byte) error {
	applied, coded := l.applied.Load(), l.coded.Load()
	var flight inFlight
	if applied < coded { // else Code may be writing there
		flight = l.flight[applied%MaxWindow]
	}
	if applied == coded || int(header.Slice) != flight.slice || header.Exchange != l.of.terms.Exchange {
		return fmt.Errorf("difference of slice %d of exchange %d after %d answers to %d codes of exchange %d: %w",
			header.Slice, header.Exchange, applied, coded, l.of.terms.Exchange, ErrOrder)
	}
	r := l.of.replica
	s := &r.slices[r.shared[flight.slice]]
	info, code, err := wire.SplitDiff(payload)
	if err != nil {
		return fmt.Errorf("difference of slice %d: %w", flight.slice, err)
	}
	diff, err := decoded(l.of.terms.Codec.Diff, code, l.scratch[:s.length], nil)
	if err != nil {
		return fmt.Errorf("difference of slice %d: %w", flight.slice, err)
	}
	shown, err := l.shown(s, diff, flight.limit)
	if err != nil {
		return fmt.Errorf("difference of slice %d: %w", flight.slice, err)
	}
	distance := max(math.Sqrt(info.SquaredDistance), shown)
	if !l.of.record.apply(flight.slice, func() { l.subtract(s, diff, distance, min(shown, flight.limit)) }) {
		return fmt.Errorf("difference of slice %d: %w", flight.slice, ErrSettled)
	}
	l.applied.Store(applied + 1)
	l.of.applied.Add(1)
	return nil
}

// shown checks a difference against the bound announced for its slice, and returns
// the distance of the two models' slices as far as the difference shows it: clipped
// to both sides' bounds.
func (l *InitiatorLane) shown(s *slice, diff tensor.Vector, limit float64) (float64, error) {
	norm := tensor.Norm2(diff)
	if !(norm <= math.MaxFloat32) { // true for NaN
		return 0, fmt.Errorf("norm %g: %w", norm, ErrAbsurd)
	}
	if norm > l.of.weight*limit*codecSlack {
		return 0, fmt.Errorf("norm %g, at most %g: %w", norm, l.of.weight*limit, ErrBound)
	}
	distance := norm / l.of.weight
	if math.IsInf(limit, 1) {
		s.Lock()
		defer s.Unlock()
		if absurd(distance, l.of.replica.of(s)) {
			return 0, fmt.Errorf("distance %g: %w", distance, ErrAbsurd)
		}
	}
	return distance, nil
}

// subtract applies a difference and remembers the distance that the partner claims,
// as far as the bound lets it into the window.
func (l *InitiatorLane) subtract(s *slice, diff tensor.Vector, distance, limit float64) {
	r := l.of.replica
	s.Lock()
	r.preserve(s)
	tensor.Sub(r.of(s), diff)
	s.drift.mark(r.of(s))
	distance = r.remember(s, distance, limit)
	s.Unlock()
	l.squared += distance * distance
}

// Ack writes the frame that acknowledges what has been applied so far, for when
// no CODE is left to carry it.
func (l *InitiatorLane) Ack(frame []byte) ([]byte, error) {
	frame = wire.Reserve(frame)
	err := wire.Seal(frame, wire.Header{Type: wire.TypeAck, Exchange: l.of.terms.Exchange, Ack: uint32(l.applied.Load())})
	return frame, err
}

// Over tells whether the lane has nothing left to send or to wait for but a last
// Ack: Code has found that no slice is left, and all that it sent has been applied.
func (l *InitiatorLane) Over() bool {
	return l.drained.Load() && l.coded.Load() == l.applied.Load()
}
