package replica

import "sort"

// How finely the shared values are divided for transfers: a sum of peers moves up to eight times as
// many parts as it has members, whatever the slices are.
const (
	// mostPieces is about how many pieces a model has, until they are as long as they
	// get.
	mostPieces = 4096
	// pieceUnit is what the length of a piece is a multiple of, and maxPiece the most.
	pieceUnit = 64
	maxPiece  = 1024
)

// pieces are the runs of shared values that each have a weight: every slice is cut into
// some. They follow from the layout and the slices, so all peers have the same.
type pieces struct {
	length int   // of each but the last of a slice
	values int   // in all of them
	first  []int // of each shared slice, and beyond the last
	before []int // values before each shared slice
}

// newPieces cuts the shared slices of a replica.
func newPieces(r *Replica) pieces {
	var p pieces
	for i := range r.shared {
		p.before = append(p.before, p.values)
		p.values += r.lengthOf(i)
	}
	rough := (p.values + mostPieces - 1) / mostPieces
	p.length = min(maxPiece, max(1, (rough+pieceUnit-1)/pieceUnit)*pieceUnit)
	pieces := 0
	for i := range r.shared {
		p.first = append(p.first, pieces)
		pieces += (r.lengthOf(i) + p.length - 1) / p.length
	}
	p.first = append(p.first, pieces)
	return p
}

// count is the number of pieces.
func (p *pieces) count() int { return p.first[len(p.first)-1] }

// slice is the shared slice that a piece belongs to.
func (p *pieces) slice(piece int) int {
	return sort.Search(len(p.first), func(i int) bool { return p.first[i] > piece }) - 1
}

// span is the range of values within its slice, of the given length, that a run of
// pieces covers.
func (p *pieces) span(slice, length, first, count int) (from, to int) {
	from = (first - p.first[slice]) * p.length
	return from, min(length, from+count*p.length)
}

// until is the number of values before a piece, which may be the one beyond the last.
func (p *pieces) until(r *Replica, piece int) int {
	if piece == p.count() {
		return p.values
	}
	slice := p.slice(piece)
	from, _ := p.span(slice, r.lengthOf(slice), piece, 1)
	return p.before[slice] + from
}

// offset is that of a piece's first value, among all values.
func (p *pieces) offset(r *Replica, piece int) int {
	slice := p.slice(piece)
	return r.slices[r.shared[slice]].offset + (piece-p.first[slice])*p.length
}

// part is the range of pieces that make one of so many parts: those whose middle lies
// in that part of the values.
func (p *pieces) part(r *Replica, part, parts int) (from, to int) {
	bound := func(part int) int {
		return sort.Search(p.count(), func(piece int) bool {
			slice := p.slice(piece)
			start, end := p.span(slice, r.lengthOf(slice), piece, 1)
			twiceMiddle := 2*p.before[slice] + start + end
			return uint64(twiceMiddle)*uint64(parts) >= 2*uint64(p.values)*uint64(part)
		})
	}
	return bound(part), bound(part + 1)
}
