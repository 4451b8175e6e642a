package replica

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// ResponderLane is one stream's part of an exchange at the passive side.
type ResponderLane struct {
	of       *Responder
	number   int       // of the lane
	answered int       // frames answered
	applied  int       // of these, how many have been applied at both sides
	held     int       // bytes of the differences of the others
	ring     []pending // as many as can be on their way
	spare    [][]byte  // frames of parts that have been applied, at most MaxWindow
	scratch  tensor.Vector
	seen     [maxBlocks]float32 // of the blocks of a slice
	limits   [maxBlocks]float32
}

func (l *ResponderLane) begin() {
	l.answered, l.applied, l.held = 0, 0, 0
	l.scratch = l.of.replica.scratch(l.scratch)
	for i := range l.ring { // an exchange that broke off has left some
		l.release(&l.ring[i])
	}
	l.ring = ring(l.ring, l.of.flying())
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
func (l *ResponderLane) pending(i int) *pending { return &l.ring[i%len(l.ring)] }

// pending is a difference that has been sent and awaits its acknowledgement: the
// frame as it was sent, which is what the partner decodes too.
type pending struct {
	part
	unit  int
	codec coding.Codec
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
	if err := l.acknowledged(header); err != nil {
		return nil, err
	}
	n, unit := len(l.of.replica.shared), int(header.Slice)
	if l.answered-l.applied >= l.of.terms.Window || l.held >= l.of.terms.pending() {
		return nil, fmt.Errorf("code of slice %d with %d unacknowledged, of %d bytes: %w", header.Slice, l.answered-l.applied, l.held, ErrWindow)
	}
	if uint64(header.Slice) >= uint64(attempts*n) || unit >= n && !l.of.taken.has(unit-n) || !l.of.taken.put(unit) {
		return nil, fmt.Errorf("code of slice %d of %d, out of turn or for the second time: %w", header.Slice, n, ErrOrder)
	}
	w := l.pending(l.answered)
	w.frame = l.spareFrame()
	w.unit, w.part = unit, part{slice: unit % n, attempt: unit / n}
	if err := l.answer(w, payload); err != nil {
		return nil, fmt.Errorf("code of slice %d: %w", unit, err)
	}
	reply := wire.Header{Type: wire.TypeDiff, Exchange: l.of.terms.Exchange, Slice: header.Slice, Flags: l.of.terms.flags()}
	if err := wire.Seal(w.frame, reply); err != nil {
		return nil, fmt.Errorf("difference of slice %d: %w", unit, err)
	}
	l.answered++
	l.held += len(w.code())
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
	if w.codec.Lattice != (coding.Lattice{}) {
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
func bounded(coder coding.Coder, code []byte, diff tensor.Vector, distance, limit, weight float64) {
	switch c := coder.(type) {
	case coding.Steps:
		if distance*c.Stretch() <= limit {
			return
		}
		if norm := math.Sqrt(c.SquaredNorm(code, len(diff))); norm > weight*limit {
			c.Shrink(code, len(diff), weight*limit/norm)
		}
	case coding.Float:
		if rounding := math.Sqrt(float64(len(diff))) * c.Rounding(); rounding > roundingSlack*weight*limit {
			c.Shorten(code, diff)
		}
	}
}

// weigh fills diff with the share that both sides move by of the difference between
// the partner's code and the own slice. It returns their distance, and how far of it
// they may move. The caller holds the slice's lock.
func (l *ResponderLane) weigh(s *slice, coder coding.Coder, diff tensor.Vector, code []byte, theirLimit float64) (distance, limit float64, err error) {
	r := l.of.replica
	own := r.of(s)
	theirs, err := decoded(coder, code, l.scratch[:s.length], own)
	if err != nil {
		return 0, 0, err
	}
	distance = math.Sqrt(tensor.ScaledDistance(diff, coding.RoundedDown(l.of.weight), theirs, own))
	if err := sane(distance, own); err != nil {
		return 0, 0, err
	}
	limit = min(l.of.limit(s), theirLimit)
	if distance > limit {
		tensor.Scale(diff, coding.RoundedDown(limit/distance))
	}
	capped := l.of.remember(s, distance, limit)
	l.of.squared[l.number] += capped * capped
	return distance, limit, nil
}

// sane is ErrImplausible if a distance from the slice own cannot be that of a model, and
// ErrDiverged if the cause is that own is not finite.
func sane(distance float64, own tensor.Vector) error {
	switch {
	case !implausible(distance, own):
		return nil
	case !tensor.Finite(own):
		return ErrDiverged
	}
	return fmt.Errorf("distance %g: %w", distance, ErrImplausible)
}

// answerBlocks answers a code of a lattice. Blocks that fail take no part; they are to
// come again.
func (l *ResponderLane) answerBlocks(w *pending, code []byte, theirLimit float64) error {
	r, lattice := l.of.replica, w.codec.Lattice
	s := &r.slices[r.shared[w.slice]]
	s.Lock()
	defer s.Unlock()
	code, err := l.expect(w, s.length, code)
	if err != nil {
		return err
	}
	n, setSize := w.values(s.length), coding.SetSize(s.length)
	w.head = wire.HeaderSize + wire.InfoSize + setSize
	w.frame = extend(wire.Reserve(w.frame), wire.InfoSize+setSize+lattice.Diff().Size(n))
	failed := coding.Set(w.frame[wire.HeaderSize+wire.InfoSize : w.head])
	limit, ranges := r.limit(s, l.of.terms.Across > 0), s.expects(l.of.terms.Across > 0).ranges
	pass := coding.Pass{
		Width: widthOf(w.attempt), Which: w.which(), Failed: failed, Seen: l.seen[:len(ranges)],
		Limits: l.spacings(ranges, lattice, limit),
	}
	switch w.attempt {
	case 0:
		pass.Halves = l.of.unknown.of(r, w.slice)
	case attempts - 1:
		pass.Halves = pass.Which
	}
	own := r.of(s)
	clear(pass.Seen)
	answer, err := lattice.Answer(w.code(), code, own, pass)
	if err != nil {
		return err
	}
	distance := math.Sqrt(answer.SquaredDistance)
	if err := sane(distance, own); err != nil {
		return err
	}
	limit = min(l.of.trust*limit, theirLimit)
	l.shrink(w, n, answer, limit)
	l.learn(w, s, failed, distance, limit)
	wire.AppendDiffInfo(w.frame[:wire.HeaderSize], wire.DiffInfo{SquaredDistance: answer.SquaredDistance})
	return nil
}

// expect reads which blocks a code has, and refuses others than those that were asked
// for. The caller holds the slice's lock.
func (l *ResponderLane) expect(w *pending, length int, code []byte) (rest []byte, err error) {
	if w.attempt == 0 {
		return code, nil
	}
	which, rest, err := splitSet(length, code)
	if err != nil {
		return nil, err
	}
	asked := l.of.asked.of(l.of.replica, w.slice)
	if string(which) != string(asked) || which.Count() == 0 {
		return nil, fmt.Errorf("%d blocks, other than those asked for: %w", which.Count(), ErrBlocks)
	}
	w.size = copy(w.blocks[:], which)
	return rest, nil
}

// spacings are the largest that are accepted of each block of a slice with these ranges and that bound;
// nil is any. The caller holds the slice's lock.
func (l *ResponderLane) spacings(ranges []float32, lattice coding.Lattice, limit float64) []float32 {
	if math.IsInf(limit, 1) {
		return nil
	}
	most := l.limits[:len(ranges)]
	for i, own := range ranges {
		most[i] = lattice.Spacing(reachSlack * max(own, float32(limit)))
	}
	return most
}

// shrink takes of the difference that an answer codes the share by which both sides
// move.
func (l *ResponderLane) shrink(w *pending, n int, answer coding.Answer, limit float64) {
	share := l.of.weight
	if norm := max(math.Sqrt(answer.SquaredDistance), math.Sqrt(answer.SquaredNorm)); norm > limit {
		share *= limit / norm
	}
	w.codec.Lattice.Diff().Shrink(w.code(), n, share)
}

// learn updates the slice's ranges and window by a code, and notes the blocks to be sent
// again. The caller holds the slice's lock.
func (l *ResponderLane) learn(w *pending, s *slice, failed coding.Set, distance, limit float64) {
	near := boundGrowth * limit
	expected := s.expects(l.of.terms.Across > 0)
	capped, share := min(distance, near), min(1, near/distance) // share is 1 for distance 0, whose quotient is infinite
	for i, seen := range l.seen[:len(expected.ranges)] {
		if (w.size == 0 || w.which().Has(i)) && !failed.Has(i) {
			expected.trackBlock(i, float64(seen), share)
		}
	}
	if w.attempt == attempts-2 {
		l.of.afford(failed)
	}
	if w.size == 0 && failed.Count() == 0 {
		capped = l.of.remember(s, distance, limit)
	}
	l.of.squared[l.number] += capped * capped
	copy(l.of.asked.of(l.of.replica, w.slice), failed) // no more those of the attempt before: they have come
	if failed.Count() > 0 {
		l.of.failed.Add(int32(failed.Count()))
		l.of.due.Add(1)
	}
}

// Ack takes the lane's last frame: it applies what the partner has acknowledged, and learns how many
// slices the partner leaves to the next exchange.
func (l *ResponderLane) Ack(header wire.Header) error {
	if err := l.of.leaves(header); err != nil {
		return err
	}
	return l.acknowledged(header)
}

// acknowledged applies the pending differences that the partner has acknowledged.
func (l *ResponderLane) acknowledged(header wire.Header) error {
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
		l.held -= len(w.code())
		l.release(w)
		l.of.applied.Add(1)
	}
	return nil
}

// Idle tells whether the lane has no difference that awaits its acknowledgement.
func (l *ResponderLane) Idle() bool { return l.applied == l.answered }
