package coding

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Lattice codes values by the lowest bits of their index on a lattice, a grid of some spacing: a receiver whose own
// values are near finds the rest. A checksum of the whole indices shows whether the result is right. The difference,
// which is the answer, has its own coder. Each block has its own spacing.
//
// The zero Lattice codes nothing; take one from a Codec.
type Lattice struct{ code, diff uint8 }

// Width is the number of bits of an index in a code. A block that failed is sent again with a larger width.
type Width uint8

const (
	// Normal is the codec's number of bits.
	Normal Width = iota
	// Wide is 4 bits more, at the same spacing: 16 times the reach.
	Wide
	// Halves codes the value itself instead of an index, in IEEE 754 half precision.
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
	// MinSpacing and MaxSpacing bound the spacing of a block: so its inverse is not denormal, and its product with
	// any index is finite.
	MinSpacing float32 = 0x1p-126
	MaxSpacing float32 = 0x1p96
	// finest is the smallest spacing, as a part of a block's largest magnitude: float32 can still represent all
	// indices and their neighbours.
	finest = 0x1p-22
	// margin is the reach of a code in units of its block's range.
	margin = 2
)

// CodeBits is the number of bits of a value in a code of normal width.
func (l Lattice) CodeBits() int { return int(l.code) }

// Diff is the coder of the difference.
func (l Lattice) Diff() Steps { return Steps{l.diff} }

func (l Lattice) bits(width Width) int {
	if width == Wide {
		return min(int(l.code)+widening, widest)
	}
	return int(l.code)
}

// Spacing is the spacing of a block of range r, unless its values are too large for so fine a lattice: the code then
// reaches twice as far as the range.
func (l Lattice) Spacing(r float32) float32 {
	return 2 * margin * r / float32(int(1)<<l.code-2)
}

// MaxSize bounds the bytes of a code of n values.
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

// Encode writes the code of the blocks of x that are in which (nil: all blocks), and returns its length. ranges has
// one range for each block of x: the larger of the two sides' ranges. A block of unknown range is coded in half
// precision. With width Halves all blocks are, and ranges may be nil. dst has MaxSize(len(x)) bytes.
//
// Values that are not finite, or beyond 65504 in half precision, make a code that Decode refuses.
func (l Lattice) Encode(dst []byte, x tensor.Vector, ranges []float32, which Set, width Width) int {
	size, _ := l.encode(dst, x, ranges, which, width)
	return size
}

// encode is Encode, and also returns the largest magnitude of the coded values.
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

// encodeBlock codes x with so many bits each, at the given spacing, or a larger one if the values need it.
func (l Lattice) encodeBlock(dst []byte, x tensor.Vector, spacing float32, bits int, w *workspace) (size int, most float32) {
	spacing = max(spacing, MinSpacing)
	low := w.low[:len(x)]
	sum, most := kernel.LatticeIndices(low, x, 1/spacing)
	if least := most * finest; !(spacing >= least) { // coarser, if it is finite
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

// isHalves tells whether the code of a block is in half precision: then the bits of its spacing are all zero.
func isHalves(code []byte) bool { return math.Float32bits(float(code)) == 0 }

// Answer is the result of answering a code.
type Answer struct {
	// SquaredDistance is the squared distance between the two slices, over the decoded blocks, with a relative error
	// of 1e-5 if differences are between 1e-18 and 1e18.
	SquaredDistance float64
	// SquaredNorm is the squared norm of the difference as it is coded.
	SquaredNorm float64
}

// Answer decodes a code against the receiver's own slice, whose values are finite, and writes the code, by Diff, of
// the difference: the sender's values minus the receiver's. It does Decode, a subtraction and Encode in one pass;
// Diff().Shrink then shortens the difference. The difference has only the values of the blocks in p.Which, one after
// the other; it is zero in blocks that fail. diff has Diff().Size bytes for them.
//
// After an error, which wraps one of this package, the contents of diff, p.Failed and p.Seen are undefined.
func (l Lattice) Answer(diff, code []byte, reference tensor.Vector, p Pass) (Answer, error) {
	n, values := len(reference), len(reference)
	if p.Which != nil {
		values = p.Which.Values(n)
	}
	steps := l.Diff()
	l.mustFit(n, len(diff), steps.Size(values), &p)
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

// difference writes the sender's values minus the receiver's for one block, and returns the largest magnitude and the
// squared norm. It reports false if the block cannot be decoded.
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

// Decode writes the values of a code to dst, decoded against the receiver's own slice, whose values are finite.
// Blocks that are not in the code, and blocks that fail, get the values of reference. The whole code is checked
// before dst changes; an error wraps one of this package. dst has the length of reference, and may be reference, but
// must not overlap code.
func (l Lattice) Decode(dst tensor.Vector, code []byte, reference tensor.Vector, p Pass) error {
	n := len(reference)
	l.mustFit(n, len(dst), n, &p)
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
		size, _ := l.checkBlock(code, i, len(own), &p) // for the size; check has accepted the block
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

// mustFit panics if lengths are wrong, which is an error of the program.
func (l Lattice) mustFit(n, dst, want int, p *Pass) {
	if dst != want || len(p.Failed) < SetSize(n) || p.Limits != nil && len(p.Limits) < Blocks(n) || p.Seen != nil && len(p.Seen) < Blocks(n) {
		panic(fmt.Sprintf("quant: %s of %d values into %d places, not %d, with %d bytes of failed blocks, %d limits and %d ranges",
			l.name(), n, dst, want, len(p.Failed), len(p.Limits), len(p.Seen)))
	}
}

// decodeBlock reports whether the decoded values are the sender's.
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

// check checks everything in the code of n values that does not depend on the receiver's slice.
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

// checkBlock returns the size of the block at the start of code. For a full block, which most are, only the spacing
// needs a check.
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
