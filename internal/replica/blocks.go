package replica

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
)

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
	n, setSize := w.values(s.length), quant.SetSize(s.length)
	w.head = wire.HeaderSize + wire.InfoSize + setSize
	w.frame = extend(wire.Reserve(w.frame), wire.InfoSize+setSize+lattice.Diff().Size(n))
	failed := quant.Set(w.frame[wire.HeaderSize+wire.InfoSize : w.head])
	limit := r.limit(s)
	pass := quant.Pass{
		Width: widthOf(w.attempt), Which: w.which(), Failed: failed, Seen: l.seen[:len(s.ranges)],
		Limits: l.spacings(s, lattice, limit),
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
	l.shrink(w, n, answer, min(limit, theirLimit))
	l.learn(w, s, failed, distance, min(limit, theirLimit))
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

// spacings are the largest that are accepted of each block of a slice with that bound;
// nil is any. The caller holds the slice's lock.
func (l *ResponderLane) spacings(s *slice, lattice quant.Lattice, limit float64) []float32 {
	if math.IsInf(limit, 1) {
		return nil
	}
	most := l.limits[:len(s.ranges)]
	for i, own := range s.ranges {
		most[i] = lattice.Spacing(reachSlack * max(own, float32(limit)))
	}
	return most
}

// shrink takes of the difference that an answer codes the share by which both sides
// move.
func (l *ResponderLane) shrink(w *pending, n int, answer quant.Answer, limit float64) {
	share := l.of.weight
	if norm := max(math.Sqrt(answer.SquaredDistance), math.Sqrt(answer.SquaredNorm)); norm > limit {
		share *= limit / norm
	}
	w.codec.Lattice.Diff().Shrink(w.code(), n, share)
}

// learn takes what a code has shown into what the slice knows of its partners, and
// notes what is to come again. The caller holds the slice's lock.
func (l *ResponderLane) learn(w *pending, s *slice, failed quant.Set, distance, limit float64) {
	believed := min(distance, boundGrowth*limit)
	share := 1.0
	if near := boundGrowth * limit; near < distance {
		share = near / distance
	}
	for i, seen := range l.seen[:len(s.ranges)] {
		if (w.size == 0 || w.which().Has(i)) && !failed.Has(i) {
			s.trackBlock(i, float64(seen), share)
		}
	}
	if w.attempt == attempts-2 && failed.Count() > 0 && !l.of.affords(failed.Count()) {
		clear(failed)
	}
	if w.size == 0 && failed.Count() == 0 {
		believed = l.of.replica.remember(s, l.of.terms.Partner, distance, limit)
	}
	l.squared += believed * believed
	if failed.Count() > 0 {
		l.of.failed.Add(int32(failed.Count()))
		copy(l.of.asked.of(l.of.replica, w.slice), failed)
		l.of.due.Add(1)
	}
}

// affords tells whether so many more blocks may come as halves.
func (p *Responder) affords(blocks int) bool {
	most := max(leastHalves, int(maxHalves*float64(p.replica.blocks)))
	return int(p.halved.Add(int32(blocks))) <= most
}
