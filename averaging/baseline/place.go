package baseline

import (
	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// place is a member's place in a ring, as its leader tells it: between whom it is, so that
// it takes parts of a sum from nobody else, and in how many parts chunks travel.
type place struct {
	rank, size     int
	lanes          int
	next, previous uint64 // marks
}

// Bits of a place in a word. View holds the mark of the next member, and above it the lower
// bits of the previous one's; Value has 53, and holds, from the lowest on, the size, the
// rank, the lanes, and the mark's upper bits.
const (
	markBits  = 36
	lowerBits = 64 - markBits
	upperBits = markBits - lowerBits
	rankBits  = 15 // MaxMembers fits
	laneBits  = 7  // MaxParts fits
)

// placeIn is the place of a rank in the line of a ring, and who is beside it.
func placeIn(line []topology.PeerID, rank, lanes int) (at place, next, previous topology.PeerID) {
	n := len(line)
	next, previous = line[(rank+1)%n], line[(rank+n-1)%n]
	return place{rank: rank, size: n, lanes: lanes, next: mark(next), previous: mark(previous)}, next, previous
}

func (p place) word(attempt uint64) averaging.Word {
	lower, upper := p.previous&(1<<lowerBits-1), p.previous>>lowerBits
	value := (upper<<laneBits|uint64(p.lanes))<<(2*rankBits) | uint64(p.rank)<<rankBits | uint64(p.size)
	return word(wordPlace, attempt, lower<<markBits|p.next, float64(value))
}

// placeOf reports false if a word tells of no place that there is.
func placeOf(w averaging.Word) (p place, ok bool) {
	high, low := unpacked(w.Value, 2*rankBits)
	rank, size := low>>rankBits, low&(1<<rankBits-1)
	upper, lanes := high>>laneBits, high&(1<<laneBits-1)
	if size < 1 || rank >= size || size > topology.MaxMembers || lanes < 1 || lanes > MaxParts || upper >= 1<<upperBits {
		return place{}, false
	}
	return place{
		rank: int(rank), size: int(size), lanes: int(lanes),
		next: w.View & (1<<markBits - 1), previous: upper<<lowerBits | w.View>>markBits,
	}, true
}
