package replica

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// InitiatorLane is one stream's part of an exchange at the active side.
type InitiatorLane struct {
	of          *Initiator
	number      int          // of the lane
	coded       atomic.Int32 // frames sent
	applied     atomic.Int32 // frames whose difference has been applied
	drained     atomic.Bool  // no slice is left that no lane has taken up
	due         atomic.Int64 // bytes of the differences that are to come
	flight      []inFlight   // as many as can be on their way
	retransmits retries
	scratch     tensor.Vector
	ranges      [maxBlocks]float32 // for Code
	peaks       [maxBlocks]float32 // for Diff
}

// inFlight is a part whose code has been sent, with what, and the bound sent with it.
type inFlight struct {
	part
	codec coding.Codec
	limit float64
	due   int64 // bytes of its difference
}

func (l *InitiatorLane) begin() {
	l.coded.Store(0)
	l.applied.Store(0)
	l.drained.Store(false)
	l.due.Store(0)
	l.scratch = l.of.replica.scratch(l.scratch)
	l.flight = ring(l.flight, l.of.flying())
	l.retransmits.begin(l.of.flying())
}

// Code writes the frame of the next slice into frame, whose memory it reuses.
// ok is false if the lane's window is full or every slice has been taken up: call
// again after the next Diff.
func (l *InitiatorLane) Code(frame []byte) (_ []byte, ok bool, err error) {
	coded, applied := l.coded.Load(), l.applied.Load()
	if int(coded-applied) >= l.of.terms.Window || l.due.Load() >= int64(l.of.terms.pending()) {
		return frame, false, nil
	}
	flight := &l.flight[int(coded)%len(l.flight)]
	repeated := l.retransmits.peek(flight)
	if !repeated && !l.take(flight) {
		l.drained.Store(true)
		return frame, false, nil
	}
	frame, err = l.encode(flight, frame)
	if err != nil {
		return frame, false, fmt.Errorf("coding slice %d: %w", flight.slice, err)
	}
	if math.IsNaN(flight.limit) {
		return frame, false, fmt.Errorf("coding slice %d: %w", flight.slice, ErrDiverged)
	}
	header := wire.Header{Type: wire.TypeCode, Exchange: l.of.terms.Exchange, Slice: l.of.unit(&flight.part), Ack: uint32(applied), Flags: l.of.terms.flags()}
	if err := wire.Seal(frame, header); err != nil {
		return frame, false, fmt.Errorf("coding slice %d: %w", flight.slice, err)
	}
	l.due.Add(flight.due)
	l.coded.Store(coded + 1)
	if repeated { // only now, so that Over never misses it
		l.retransmits.pop()
	}
	return frame, true, nil
}

// take fills in the next slice that no lane has taken up. It reports false if none is
// left.
func (l *InitiatorLane) take(flight *inFlight) bool {
	turn, more := l.of.turns.take()
	if !more {
		return false
	}
	r := l.of.replica
	index := l.of.order.at(turn)
	all := turn + int(l.of.terms.Exchange%100)*len(r.shared) // of all exchanges: a proportion of few slices holds over several
	*flight = inFlight{part: part{slice: index}, codec: r.codec(l.of.terms.Plan, index, all)}
	return true
}

// encode codes a part as it is now and fills in the bound that goes with it: NaN if
// the slice turns out not to be finite. A slice with values that its codec cannot hold
// goes raw; blocks of one that are sent again cannot.
func (l *InitiatorLane) encode(flight *inFlight, frame []byte) ([]byte, error) {
	r := l.of.replica
	s := &r.slices[r.shared[flight.slice]]
	frame = extend(wire.Reserve(frame), wire.InfoSize)
	frame = append(frame, flight.which()...)
	head := len(frame)
	s.Lock()
	defer s.Unlock()
	own := r.of(s)
	frame, holds := l.code(flight, frame, s, own)
	if !holds {
		if flight.attempt > 0 {
			return frame, errOutgrown
		}
		flight.codec, _ = coding.ByID(coding.Raw)
		frame, _ = l.code(flight, frame[:head], s, own)
	}
	flight.due = int64(flight.codec.Diff.Size(flight.values(s.length)))
	flight.limit = l.of.limit(s) // after the code, which has brought the slice into the cache
	info := wire.CodeInfo{Bound: announced(flight.limit), Codec: uint8(flight.codec.ID)}
	wire.AppendCodeInfo(frame[:wire.HeaderSize], info)
	return frame, nil
}

// code appends the code of a part, and reports whether its codec can code it. The caller
// holds the slice's lock.
func (l *InitiatorLane) code(flight *inFlight, frame []byte, s *slice, own tensor.Vector) (_ []byte, holds bool) {
	head, lattice := len(frame), flight.codec.Lattice
	if lattice == (coding.Lattice{}) {
		frame = extend(frame, flight.codec.Code.Size(s.length))
		return frame, flight.codec.Encode(frame[head:], own)
	}
	frame = extend(frame, lattice.MaxSize(s.length))
	size, holds := flight.codec.EncodeNear(frame[head:], own, l.expected(s), flight.which(), widthOf(flight.attempt))
	return frame[:head+size], holds
}

// errOutgrown: values became too large for the codec between one attempt and the next.
var errOutgrown = errors.New("a slice has outgrown its codec since it was first sent; the next exchange sends it raw")

// expected are the ranges of a slice's blocks: the larger of the two sides'. The caller
// holds the slice's lock.
func (l *InitiatorLane) expected(s *slice) []float32 {
	known := s.expects(l.of.terms.Across > 0).ranges
	ranges := l.ranges[:len(known)]
	codes := l.of.theirs[s.firstBlock:][:len(ranges)]
	for i, own := range known {
		ranges[i] = max(coding.RangeOf(codes[i]), own)
	}
	return ranges
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
		flight = l.flight[int(applied)%len(l.flight)]
	}
	if applied == coded || header.Slice != l.of.unit(&flight.part) || header.Exchange != l.of.terms.Exchange {
		return fmt.Errorf("difference of slice %d of exchange %d after %d answers to %d codes of exchange %d: %w",
			header.Slice, header.Exchange, applied, coded, l.of.terms.Exchange, ErrOrder)
	}
	if err := l.difference(&flight, payload); err != nil {
		return fmt.Errorf("difference of slice %d: %w", header.Slice, err)
	}
	l.due.Add(-flight.due)
	l.applied.Store(applied + 1)
	l.of.applied.Add(1)
	return nil
}

// difference checks a difference, applies it, and sees to what has to be sent again.
func (l *InitiatorLane) difference(flight *inFlight, payload []byte) error {
	r := l.of.replica
	s := &r.slices[r.shared[flight.slice]]
	info, code, err := wire.SplitDiff(payload)
	if err != nil {
		return err
	}
	failed, code, err := splitFailed(flight.codec, &flight.part, s.length, code)
	if err != nil {
		return err
	}
	n := flight.values(s.length)
	diff, err := differenceOf(flight.codec.Diff, code, l.scratch[:n])
	if err != nil {
		return err
	}
	shown, err := l.shown(s, diff.norm(n), flight.limit)
	if err != nil {
		return err
	}
	seen := sighting{claimed: max(math.Sqrt(info.SquaredDistance), shown), distance: min(shown/flight.codec.Left(), flight.limit), failed: failed}
	if lattice := flight.codec.Lattice; lattice != (coding.Lattice{}) {
		seen.peaks = l.peaks[:coding.Blocks(n)]
		lattice.Diff().Peaks(seen.peaks, code, n)
		grown := 1.0
		if seen.distance >= flight.limit { // clipped: those of the models are larger
			grown = boundGrowth
		}
		tensor.Scale(seen.peaks, float32(grown/l.of.weight))
	}
	if !l.of.record.apply(int(l.of.unit(&flight.part)), func() { l.subtract(s, flight, &diff, seen) }) {
		return ErrSettled
	}
	if failed.Count() > 0 {
		l.of.failed.Add(int32(failed.Count()))
		l.retransmits.push(inFlight{part: flight.rest(failed), codec: flight.codec})
		l.of.due.Add(1)
	}
	return nil
}

// shown checks the norm of a difference against the bound announced for its slice, and
// returns the distance of the two models' slices as far as the difference shows it: clipped
// to both sides' bounds.
func (l *InitiatorLane) shown(s *slice, norm, limit float64) (float64, error) {
	if !(norm <= math.MaxFloat32) { // true for NaN
		return 0, fmt.Errorf("norm %g: %w", norm, ErrImplausible)
	}
	if norm > l.of.weight*limit*codecSlack {
		return 0, fmt.Errorf("norm %g, at most %g: %w", norm, l.of.weight*limit, ErrBound)
	}
	distance := norm / l.of.weight
	if math.IsInf(limit, 1) {
		s.Lock()
		defer s.Unlock()
		if implausible(distance, l.of.replica.of(s)) {
			return 0, fmt.Errorf("distance %g: %w", distance, ErrImplausible)
		}
	}
	return distance, nil
}

// subtract applies a difference and remembers how far the partner's blocks are, and
// its slice if all of it has come: what it claims tells Distance something, and nothing else.
func (l *InitiatorLane) subtract(s *slice, flight *inFlight, diff *difference, seen sighting) {
	r := l.of.replica
	s.Lock()
	r.change(&flight.part, &l.of.moves, diff, -1)
	most, expected := boundGrowth*seen.distance, s.expects(l.of.terms.Across > 0)
	if flight.size == 0 && seen.failed.Count() == 0 && !unclipped(r) {
		most = expected.bound.show(l.of.terms.Partner, seen.distance, flight.limit, l.of.trust)
	}
	expected.track(&flight.part, seen)
	s.Unlock()
	distance := min(seen.claimed, most)
	l.of.squared[l.number] += distance * distance
}

// Leave ends a partial exchange: no lane takes up a further slice, beyond the least number that
// an exchange carries.
func (l *InitiatorLane) Leave() {
	if a := l.of; a.terms.Partial {
		a.leave(int32(a.turns.leave(least(len(a.replica.shared)))))
	}
}

// Ack writes the frame that acknowledges what has been applied so far, for when
// no CODE is left to carry it. It says how many slices the exchange leaves to the next.
func (l *InitiatorLane) Ack(frame []byte) ([]byte, error) {
	frame = wire.Reserve(frame)
	err := wire.Seal(frame, wire.Header{
		Type: wire.TypeAck, Exchange: l.of.terms.Exchange, Slice: uint32(l.of.turns.left()), Ack: uint32(l.applied.Load()), Flags: l.of.terms.flags(),
	})
	return frame, err
}

// Flying is how many slices are under way, and Applied how many differences have been applied.
func (l *InitiatorLane) Flying() int  { return int(l.coded.Load() - l.applied.Load()) }
func (l *InitiatorLane) Applied() int { return int(l.applied.Load()) }

// Over tells whether the lane has nothing left to send or to wait for but a last
// Ack: Code has found that no slice is left, nothing has to be sent again, and all that
// was sent has been applied.
//
// While nothing is under way only Code changes what has to be sent again, and Code counts a
// part as sent before it takes it away from there: so both looks at what is under way, one
// before and one after, are needed, whichever of the two goroutines asks.
func (l *InitiatorLane) Over() bool {
	settled := func() bool { return l.coded.Load() == l.applied.Load() }
	return l.drained.Load() && settled() && l.retransmits.empty() && settled()
}
