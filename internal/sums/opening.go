package sums

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// trial is the last attempt of a coordinator.
type trial struct {
	running bool
	attempt uint64
	line    []ID                  // members with a place, by rank
	alone   bool                  // no other was a member when it began
	stripes Stripes               // of a Moved sum
	holding search                // for a participant that does not hold the sum
	began   time.Duration         // when the attempt began
	moved   time.Duration         // when a participant last reported progress
	masks   func(rank int) []byte // returns the masks' part of a place; nil for other sums
}

// enlist makes the list of participants of a masked sum, and the stripes of a Moved one.
func (t *trial) enlist(l *lead) {
	if t.stripes = 0; l.op.moved() {
		t.stripes = l.m.Pace.stripes(l.op, int(min(l.length, MaxLength)), len(t.line))
	}
	if t.masks = nil; !l.op.masked() {
		return
	}
	exponent, list, cards := int16(mask.MinExponent), make([]byte, 2), []mask.Card(nil)
	for _, id := range t.line {
		c := l.came[id]
		exponent = max(exponent, c.Exponent)
		list, cards = append(append(list, mask.Tag(id)...), c.Nonce[:]...), append(cards, c.Card)
	}
	binary.LittleEndian.PutUint16(list, uint16(exponent))
	roster := mask.NewRoster(l.name, t.attempt, list)
	t.masks = func(rank int) []byte {
		said := slices.Clone(list)
		for _, other := range roster.Neighbours(rank) {
			said = append(said, cards[other][:]...)
		}
		return said
	}
}

// opening is the last phase of a masked sum: all participants hold it, and reveal the seeds of their second masks. A
// participant that has revealed its seed takes part in no other attempt: so either this attempt counts, or the sum
// fails, and a new coordinator continues it. For one participant that dies or is silent its neighbours reveal their
// pieces.
type opening struct {
	opens   uint64 // the attempt; 0 if there is none yet
	size    uint32 // of its participants
	missing uint32 // 1 + the rank of the participant that does not reveal its seed; 0 if all do
	since   time.Duration
	asks    time.Duration // when participants were last asked
}

// begun is the last attempt in which participants claim to have revealed seeds; 0 if there is none. All held that
// attempt then: so if nobody else does, and no member has left lately, the claim is false.
func (o *opening) begun(l *lead) (attempt uint64) {
	gone := l.m.now-l.m.departed < outFor
	for _, id := range o.claims(l) {
		if c := l.came[id]; c.attempt >= attempt && (gone || slices.ContainsFunc(l.came.ids(), func(other ID) bool {
			return other != id && l.came[other].stage >= Holding && l.came[other].attempt == c.attempt
		})) {
			attempt, o.size = c.attempt, c.Size
		}
	}
	return attempt
}

// claims returns the participants that claim to have revealed seeds.
func (o *opening) claims(l *lead) []ID {
	return those(l.came.ids(), func(id ID) bool { return l.op.masked() && l.came[id].stage == Told })
}

// rejects excludes the participants whose claim begun finds to be false, and tells whether there were any.
func (o *opening) rejects(l *lead) bool {
	liars := o.claims(l)
	o.exclude(l, liars, "it says that it has told the seed of its mask in an attempt that nobody else holds")
	return len(liars) > 0
}

// exclude removes participants and continues without them.
func (o *opening) exclude(l *lead, ids []ID, why string) {
	for _, id := range ids {
		l.m.fact(Fact{What: Thrown, Sum: l.name, Who: []ID{id}, Why: why})
		l.blame.out[id], l.m.thrown[id] = "", l.m.now
		delete(l.came, id)
	}
}

// open begins with an attempt that all hold, or with that of begun. A sum without masks counts at once.
func (o *opening) open(l *lead, attempt uint64) {
	if !l.op.masked() {
		l.commit(attempt, nil)
		return
	}
	if l.attempt == attempt {
		o.size = uint32(len(l.line))
	} else { // of an earlier coordinator: participants report its places
		l.line = nil
	}
	o.opens, l.running, o.since, o.asks = attempt, true, l.m.now, l.m.now-l.m.times.Retransmit
	o.proceed(l)
}

// telling returns the participants that hold the sum: by rank, those that have revealed everything they were asked
// for, and for no rank but their own; and those that the coordinator waits for.
func (o *opening) telling(l *lead) (told []*comer, waits []ID) {
	for _, id := range l.came.ids() {
		switch c := l.came[id]; {
		case c.attempt != o.opens || c.stage < Holding:
		case c.stage < Told || o.missing > 0 && c.Missing != o.missing && c.Rank+1 != o.missing:
			waits = append(waits, id)
		case c.Size == o.size && (l.line == nil || l.line[c.Rank] == id):
			told = append(told, c)
		}
	}
	slices.SortStableFunc(told, func(a, b *comer) int { return cmp.Compare(a.Rank, b.Rank) })
	return slices.CompactFunc(told, func(a, b *comer) bool { return a.Rank == b.Rank }), waits
}

// proceed makes the attempt count once all seeds are known.
func (o *opening) proceed(l *lead) {
	told, waits := o.telling(l)
	seeds, pieces, missing := make([]byte, 0, int(o.size)*len(mask.Seed{})), [][]byte(nil), o.size
	for i, c := range told {
		if int(c.Rank) > i {
			missing = min(missing, uint32(i))
		}
		if seeds = append(seeds, c.Seed[:]...); c.Piece != (mask.Seed{}) {
			pieces = append(pieces, c.Piece[:])
		}
	}
	needed, _ := l.came.least(l.op)
	switch missing = min(missing, uint32(len(told))) + 1; {
	case len(told) == int(o.size):
		l.commit(o.opens, seeds)
	case len(waits) > 0:
		o.wait(l, waits)
	case len(told)+1 != int(o.size) || len(told) < needed || o.missing > 0 && o.missing != missing:
		silent := those(l.line, func(id ID) bool { return !slices.ContainsFunc(told, func(c *comer) bool { return c.ID == id }) })
		l.fault(codeOf(ErrTooFew), fmt.Sprintf("%d of %d have told the seeds of their masks, not %s: sum again, by another name", len(told), o.size, shorts(silent)))
	case o.missing == 0:
		o.missing, o.since, o.asks = missing, l.m.now, l.m.now-l.m.times.Retransmit
		o.proceed(l)
	default:
		seed := mask.Join(pieces)
		l.commit(o.opens, slices.Insert(seeds, int(missing-1)*len(seed), seed[:]...))
	}
}

// wait asks participants to reveal their seeds, again after a while, and continues without those that do not.
func (o *opening) wait(l *lead, waits []ID) {
	if l.m.now-o.since >= l.m.times.Silence {
		o.exclude(l, waits, "it has the sum, and does not tell the seed of its mask")
		o.proceed(l)
		return
	}
	if l.m.now-o.asks < l.m.times.Retransmit {
		return
	}
	o.asks = l.m.now
	for _, id := range waits {
		w := &wire.Sum{Kind: wire.SumReveal, Name: l.name, Attempt: o.opens}
		if o.missing > 0 {
			w.Rank, w.Size = o.missing-1, o.size
		}
		l.m.tell(id, w)
	}
}
