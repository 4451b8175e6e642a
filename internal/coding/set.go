package coding

import "math/bits"

// Set is a set of a slice's blocks: block i is bit i%8, from the lowest, of byte
// i/8. Bytes that are missing at the end count as zero; nil is the empty set.
type Set []byte

// SetSize is the number of bytes of a set of the blocks of n values.
func SetSize(n int) int { return (Blocks(n) + 7) / 8 }

// Has tells whether a block is in the set.
func (s Set) Has(block int) bool {
	at := block / 8
	return at < len(s) && s[at]>>(block%8)&1 == 1
}

// Put adds a block to the set, which must have a byte for it.
func (s Set) Put(block int) { s[block/8] |= 1 << (block % 8) }

// Limit takes all but the first so many blocks out of the set.
func (s Set) Limit(most int) {
	for i := range 8 * len(s) {
		switch {
		case !s.Has(i):
		case most > 0:
			most--
		default:
			s[i/8] &^= 1 << (i % 8)
		}
	}
}

// Count is the number of blocks in the set.
func (s Set) Count() int {
	count := 0
	for _, b := range s {
		count += bits.OnesCount8(b)
	}
	return count
}

// Fits tells whether all blocks of the set are among those of n values.
func (s Set) Fits(n int) bool {
	last := Blocks(n)
	for i := len(s) - 1; i >= 0; i-- {
		if top := 8*i + bits.Len8(s[i]); s[i] != 0 && top > last {
			return false
		}
	}
	return true
}

// Values is the number of values in the set's blocks, of a slice of n values.
func (s Set) Values(n int) int {
	total := 0
	for from, to := range s.Runs(n) {
		total += to - from
	}
	return total
}

// Runs yields the values in the set's blocks, of a slice of n values: for each run of neighbouring blocks the first
// value and the one past the last. Codes of this package are made block by block: so the code of the set's values is
// the codes of the runs, one after the other.
func (s Set) Runs(n int) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		for i := 0; i < Blocks(n); i++ {
			if !s.Has(i) {
				continue
			}
			from := i * BlockLen
			for s.Has(i) && i < Blocks(n) {
				i++
			}
			if !yield(from, min(i*BlockLen, n)) {
				return
			}
		}
	}
}
