package coding

import (
	"encoding/binary"
	"fmt"
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

// CodeBits is the number of bits of a value in a code.
func (l Lattice) CodeBits() int { return int(l.code) }

// Diff is the coder of the difference.
func (l Lattice) Diff() Steps { return Steps{l.diff} }

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
	size, _ := l.encode(dst, x, ranges, which, width)
	return size
}

// encode is Encode, and returns the largest magnitude that was coded, which the code needs
// anyway.
func (l Lattice) encode(dst []byte, x tensor.Vector, ranges []float32, which Set, width Width) (size int, most float32) {
	var w workspace
	for i := range Blocks(len(x)) {
		if which != nil && !which.Has(i) {
			continue
		}
		block := x[i*BlockLen:][:blockLen(i, len(x))]
		var n int
		var peak float32
		if width == Halves || !(ranges[i] > 0 && ranges[i] <= MaxRange) {
			n, peak = encodeHalves(dst[size:], block)
		} else {
			n, peak = l.encodeBlock(dst[size:], block, l.Spacing(ranges[i]), l.bits(width), &w)
		}
		size, most = size+n, max(most, peak)
	}
	return size, most
}

func encodeHalves(dst []byte, x tensor.Vector) (size int, most float32) {
	size = halvesSize(len(x))
	putFloat(dst, 0)
	kernel.FP16Encode(dst[spacingSize:size], x)
	return size, kernel.MaxAbs(x)
}

// encodeBlock codes x with so many bits, at no less than the spacing.
func (l Lattice) encodeBlock(dst []byte, x tensor.Vector, spacing float32, bits int, w *workspace) (size int, most float32) {
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
	size = headSize + planesSize(len(x), bits)
	putFloat(dst, spacing)
	binary.LittleEndian.PutUint32(dst[spacingSize:], sum)
	w.pack(dst[headSize:size], len(x), bits)
	return size, most
}

// isHalves tells of a block's code whether it is of halves: its spacing is all zero
// bits.
func isHalves(code []byte) bool { return math.Float32bits(float(code)) == 0 }

// Answer is what the passive side learns while it answers a code.
type Answer struct {
	// SquaredDistance is that between the two slices, over the blocks decoded, to
	// a relative 1e-5 if differences are between 1e-18 and 1e18.
	SquaredDistance float64
	// SquaredNorm is that of the difference as its code has it.
	SquaredNorm float64
}

// Answer decodes a code against the receiver's own slice, whose values are finite,
// and writes the code, by Diff, of the difference: of the sender's values less the
// receiver's. It is Decode, a subtraction and Encode in one pass; Diff().Shrink
// brings the difference to the length that is wanted. The difference has the values
// of the blocks in p.Which only, one after the other; those of blocks that fail are
// zero. Diff has Diff().Size bytes for them.
//
// On an error, which wraps one of this package, what diff, p.Failed and p.Seen hold
// is undefined.
func (l Lattice) Answer(diff, code []byte, reference tensor.Vector, p Pass) (Answer, error) {
	n, values := len(reference), len(reference)
	if p.Which != nil {
		values = p.Which.Values(n)
	}
	steps := l.Diff()
	l.fits(n, len(diff), steps.Size(values), &p)
	var w workspace
	var answer Answer
	clear(p.Failed)
	for i := range Blocks(n) {
		if !p.has(i) {
			continue
		}
		own := reference[i*BlockLen:][:blockLen(i, n)]
		size, err := l.checkBlock(code, i, len(own), &p)
		if err != nil {
			return Answer{}, blockError(l.name(), i, err)
		}
		block := code[:size]
		code = code[size:]
		to := diff[:steps.blockSize(len(own))]
		diff = diff[len(to):]
		d := w.values[:len(own)]
		peak, squared, ok := l.difference(d, block, own, i, &p, &w)
		if !ok {
			p.Failed.Put(i)
			clear(to)
			continue
		}
		if p.Seen != nil {
			p.Seen[i] = peak
		}
		answer.SquaredDistance += squared
		answer.SquaredNorm += steps.encodeBlock(to, d, peak, &w)
	}
	if len(code) > 0 {
		return Answer{}, l.longError(n, len(code))
	}
	return answer, nil
}

// difference writes how far the sender's values in a block are from the receiver's,
// and returns the largest magnitude and the squared norm of that, or false if they
// cannot be known.
func (l Lattice) difference(dst tensor.Vector, code []byte, reference tensor.Vector, block int, p *Pass, w *workspace) (peak float32, squared float64, ok bool) {
	if isHalves(code) {
		kernel.FP16Decode(dst, code[spacingSize:])
		squared = kernel.ScaledDistance(dst, 1, dst, reference)
		return kernel.MaxAbs(dst), squared, true
	}
	spacing, bits := float(code), l.bits(p.Width)
	if p.beyond(block, spacing) {
		return 0, 0, false
	}
	low, high := w.unpack(code[headSize:], len(dst), bits)
	sum, peak, squares := kernel.LatticeDifference(dst, low, high, reference, spacing, 1/spacing, bits)
	if sum != word(code[spacingSize:]) {
		return 0, 0, false
	}
	return peak, float64(squares), true
}

// Decode writes the values of a code to dst, decoded against the receiver's own
// slice, whose values are finite. Blocks that are not in the code, and those that
// fail, get the values of reference. The whole code is checked before dst is
// touched; an error wraps one of this package. Dst has the length of reference, and
// may be it, but must not overlap code.
func (l Lattice) Decode(dst tensor.Vector, code []byte, reference tensor.Vector, p Pass) error {
	n := len(reference)
	l.fits(n, len(dst), n, &p)
	if err := l.check(n, code, &p); err != nil {
		return err
	}
	var w workspace
	clear(p.Failed)
	for i := range Blocks(n) {
		from := i * BlockLen
		own, to := reference[from:][:blockLen(i, n)], dst[from:][:blockLen(i, n)]
		if !p.has(i) {
			copy(to, own)
			continue
		}
		values := w.values[:len(own)]
		size, _ := l.checkBlock(code, i, len(own), &p) // a second time, for the size
		block := code[:size]
		code = code[size:]
		if !l.decodeBlock(values, block, own, i, &p, &w) {
			copy(to, own)
			p.Failed.Put(i)
			continue
		}
		if p.Seen != nil {
			p.Seen[i] = peakDistance(values, own)
		}
		copy(to, values)
	}
	return nil
}

// fits panics if lengths are wrong that only the program can get wrong.
func (l Lattice) fits(n, dst, want int, p *Pass) {
	if dst != want || len(p.Failed) < SetSize(n) || p.Limits != nil && len(p.Limits) < Blocks(n) || p.Seen != nil && len(p.Seen) < Blocks(n) {
		panic(fmt.Sprintf("quant: %s of %d values into %d places, not %d, with %d bytes of failed blocks, %d limits and %d ranges",
			l.name(), n, dst, want, len(p.Failed), len(p.Limits), len(p.Seen)))
	}
}

// decodeBlock reports whether the values are the sender's.
func (l Lattice) decodeBlock(dst tensor.Vector, code []byte, reference tensor.Vector, block int, p *Pass, w *workspace) bool {
	if isHalves(code) {
		kernel.FP16Decode(dst, code[spacingSize:])
		return true
	}
	spacing, bits := float(code), l.bits(p.Width)
	if p.beyond(block, spacing) {
		return false
	}
	low, high := w.unpack(code[headSize:], len(dst), bits)
	return kernel.LatticeValues(dst, low, high, reference, spacing, 1/spacing, bits) == word(code[spacingSize:])
}

func peakDistance(x, y tensor.Vector) float32 {
	peak := float32(0)
	for i, v := range x {
		peak = max(peak, v-y[i], y[i]-v)
	}
	return peak
}

func word(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func (l Lattice) name() string { return fmt.Sprintf("lattice of %d bits", l.code) }

// check looks at all of the code of n values that needs no reference.
func (l Lattice) check(n int, code []byte, p *Pass) error {
	rest := code
	for i := range Blocks(n) {
		if !p.has(i) {
			continue
		}
		size, err := l.checkBlock(rest, i, blockLen(i, n), p)
		if err != nil {
			return blockError(l.name(), i, err)
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return l.longError(n, len(rest))
	}
	return nil
}

func (l Lattice) longError(n, extra int) error {
	return fmt.Errorf("quant: decode %s: %d bytes too many for %d values: %w", l.name(), extra, n, ErrSize)
}

// checkBlock returns the size of the block at the start of code. Most blocks are
// whole, and need no more than a look at their spacing.
func (l Lattice) checkBlock(code []byte, block, n int, p *Pass) (size int, err error) {
	if size = headSize + BlockLen/8*l.bits(p.Width); n == BlockLen && p.Width != Halves && len(code) >= size {
		if s := float(code); s >= MinSpacing && s <= MaxSpacing {
			return size, nil
		}
	}
	return l.checkOther(code, block, n, p)
}

func (l Lattice) checkOther(code []byte, block, n int, p *Pass) (size int, err error) {
	if len(code) < spacingSize {
		return 0, ErrSize
	}
	if isHalves(code) {
		size = halvesSize(n)
		switch {
		case !p.Halves.Has(block):
			return 0, ErrHalf
		case len(code) < size:
			return 0, ErrSize
		case !kernel.FP16Finite(code[spacingSize:size]):
			return 0, ErrNotFinite
		}
		return size, nil
	}
	if p.Width == Halves {
		return 0, ErrSpacing
	}
	size = l.blockSize(n, p.Width)
	if len(code) < size {
		return 0, ErrSize
	}
	if s := float(code); !(s >= MinSpacing && s <= MaxSpacing) {
		return 0, ErrSpacing
	}
	if n < BlockLen && padded(code[headSize:size], n, l.bits(p.Width)) {
		return 0, ErrPadding
	}
	return size, nil
}
