package collective

import (
	"hash/fnv"

	"github.com/seed-97356399/murmuration/topology"
)

// Place is a member's place in a ring, as its coordinator tells it: between whom it is, so
// that it takes parts of a sum from nobody else.
type Place struct {
	Rank, Size     int
	Next, Previous uint64 // marks
}

// Bits of a place in a word. View holds the mark of the next member, and above it the lower
// bits of the previous one's; Value has 53, and holds, from the lowest on, the size, the
// rank, a one, and the mark's upper bits.
const (
	markBits  = 36
	lowerBits = 64 - markBits
	upperBits = markBits - lowerBits
	rankBits  = 15 // MaxMembers fits
	oneBits   = 7
)

// PlaceIn is the place of a rank in the line of a ring.
func PlaceIn(line []topology.PeerID, rank int) Place {
	n := len(line)
	return Place{Rank: rank, Size: n, Next: Mark(line[(rank+1)%n]), Previous: Mark(line[(rank+n-1)%n])}
}

// Word is the word that tells of the place in an attempt.
func (p Place) Word(attempt uint64) Word {
	lower, upper := p.Previous&(1<<lowerBits-1), p.Previous>>lowerBits
	value := (upper<<oneBits|1)<<(2*rankBits) | uint64(p.Rank)<<rankBits | uint64(p.Size)
	return Word{Kind: WordPlace, Round: attempt, View: lower<<markBits | p.Next, Value: float64(value)}
}

// PlaceOf is the place that a word tells of. It reports false if a word tells of no place that there is.
func PlaceOf(w Word) (p Place, ok bool) {
	if !(w.Value >= 0 && w.Value < 1<<53) {
		return Place{}, false
	}
	high, low := uint64(w.Value)>>(2*rankBits), uint64(w.Value)&(1<<(2*rankBits)-1)
	rank, size := low>>rankBits, low&(1<<rankBits-1)
	upper, one := high>>oneBits, high&(1<<oneBits-1)
	if size < 1 || rank >= size || size > topology.MaxMembers || one != 1 || upper >= 1<<upperBits {
		return Place{}, false
	}
	return Place{
		Rank: int(rank), Size: int(size),
		Next: w.View & (1<<markBits - 1), Previous: upper<<lowerBits | w.View>>markBits,
	}, true
}

// Mark is a short name of a peer, for words.
func Mark(id topology.PeerID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return h.Sum64() % (1 << markBits)
}
