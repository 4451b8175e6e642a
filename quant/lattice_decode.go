package quant

import (
	"encoding/binary"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

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
		block, rest := l.next(code, len(own), p.Width)
		code = rest
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

// next cuts the code of a block of n values off a code that has been checked.
func (l Lattice) next(code []byte, n int, width Width) (block, rest []byte) {
	size := halvesSize(n)
	if !isHalves(code) {
		size = l.blockSize(n, width)
	}
	return code[:size], code[size:]
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

// peakDistance is the largest difference between two vectors.
func peakDistance(x, y tensor.Vector) float32 {
	peak := float32(0)
	for i, v := range x {
		peak = max(peak, v-y[i], y[i]-v)
	}
	return peak
}

func putWord(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

func word(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
