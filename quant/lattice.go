package quant

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Lattice codes values by the lowest bits of their index on a lattice, a grid of
// some spacing: a receiver whose own values are near finds the rest. A checksum of
// the whole indices tells whether it did; the difference, with which it answers,
// has a coder of its own. Each block has its own spacing.
//
// The zero Lattice codes nothing; take one from a Codec.
type Lattice struct{ code, diff uint8 }

// Width is how much of an index a code carries. A block that failed is sent again
// wider.
type Width uint8

const (
	// Normal is the codec's number of bits.
	Normal Width = iota
	// Wide is 4 bits more, at the same spacing: 16 times the reach.
	Wide
	// Halves is no index but the value itself, as IEEE 754 half precision.
	Halves
)

const (
	widening = 4
	widest   = 12 // bits
)

const (
	spacingSize = 4
	sumSize     = 4
	headSize    = spacingSize + sumSize
)

const (
	// MinSpacing and MaxSpacing bound the spacing of a block: its inverse is not
	// denormal, and multiplied by any index it is finite.
	MinSpacing float32 = 0x1p-126
	MaxSpacing float32 = 0x1p96
	// finest is the smallest spacing in units of a block's largest magnitude: float32
	// has all indices then, and their neighbours.
	finest = 0x1p-22
	// margin is how far beyond a block's range its code reaches.
	margin = 2
)

// CodeBits and DiffBits are the numbers of bits of a value.
func (l Lattice) CodeBits() int { return int(l.code) }
func (l Lattice) DiffBits() int { return int(l.diff) }

// Diff is the coder of the difference.
func (l Lattice) Diff() Steps { return Steps{l.diff} }

// bits is how many bits of an index travel.
func (l Lattice) bits(width Width) int {
	if width == Wide {
		return min(int(l.code)+widening, widest)
	}
	return int(l.code)
}

// Spacing is that of a block with a range, if its values are not too large for so
// fine a lattice: the code reaches twice as far as the range.
func (l Lattice) Spacing(r float32) float32 {
	return 2 * margin * r / float32(int(1)<<l.code-2)
}

// MaxSize is the most bytes that a code of n values takes.
func (l Lattice) MaxSize(n int) int {
	whole, rest := n/BlockLen, n%BlockLen
	size := whole * l.maxBlock(BlockLen)
	if rest > 0 {
		size += l.maxBlock(rest)
	}
	return size
}

func (l Lattice) maxBlock(n int) int { return max(halvesSize(n), l.blockSize(n, Wide)) }

func (l Lattice) blockSize(n int, width Width) int {
	return headSize + planesSize(n, l.bits(width))
}

func halvesSize(n int) int { return spacingSize + fp16Size*n }

// Encode writes the code of the blocks of x that are in which, or of all if it is
// nil, and returns its length. Ranges has one for each block of x: of the ranges
// that the two sides believe, the larger. A block whose range is unknown goes as
// halves; with Halves, all do, and ranges may be nil. Dst has room for MaxSize
// bytes of x's length.
//
// Values that are not finite, and halves beyond 65504, make a code that Decode
// refuses.
func (l Lattice) Encode(dst []byte, x tensor.Vector, ranges []float32, which Set, width Width) int {
	var w workspace
	size := 0
	for i := range Blocks(len(x)) {
		if which != nil && !which.Has(i) {
			continue
		}
		block := x[i*BlockLen:][:blockLen(i, len(x))]
		if width == Halves || !(ranges[i] > 0 && ranges[i] <= MaxRange) {
			size += encodeHalves(dst[size:], block)
		} else {
			size += l.encodeBlock(dst[size:], block, l.Spacing(ranges[i]), l.bits(width), &w)
		}
	}
	return size
}

func encodeHalves(dst []byte, x tensor.Vector) int {
	size := halvesSize(len(x))
	putFloat(dst, 0)
	kernel.FP16Encode(dst[spacingSize:size], x)
	return size
}

// encodeBlock codes x with so many bits, at no less than the spacing.
func (l Lattice) encodeBlock(dst []byte, x tensor.Vector, spacing float32, bits int, w *workspace) int {
	spacing = max(spacing, MinSpacing)
	low := w.low[:len(x)]
	sum, most := kernel.LatticeIndices(low, x, 1/spacing)
	if least := most * finest; !(spacing >= least) { // coarser, if it is finite at all
		spacing = least
		sum, _ = kernel.LatticeIndices(low, x, 1/spacing)
	}
	if bits > bytePlane {
		kernel.LatticeHigh(w.high[:len(x)], x, 1/spacing)
	}
	size := headSize + planesSize(len(x), bits)
	putFloat(dst, spacing)
	putWord(dst[spacingSize:], sum)
	w.pack(dst[headSize:size], len(x), bits)
	return size
}

// validSpacing is a fault, or nil.
func validSpacing(s float32) error {
	if !(s >= MinSpacing && s <= MaxSpacing) {
		return ErrSpacing
	}
	return nil
}

// isHalves tells of a block's code whether it is of halves: its spacing is all zero
// bits.
func isHalves(code []byte) bool { return math.Float32bits(float(code)) == 0 }
