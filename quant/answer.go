package quant

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

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
