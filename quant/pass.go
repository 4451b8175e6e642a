package quant

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Pass is one attempt at the blocks of a slice, as its receiver sees it.
type Pass struct {
	// Width is what the blocks are coded with.
	Width Width
	// Which are the blocks that are coded; nil is all of them.
	Which Set
	// Limits has for each block the largest spacing that is accepted, 0 for none
	// at all: a block beyond fails without being looked at. Nil is no limit.
	Limits []float32
	// Halves are the blocks that may come as halves: those whose range the receiver
	// does not know, and those that failed when they were wide.
	Halves Set
	// Failed is where the blocks that could not be decoded are put: their checksum
	// is wrong, since the models are too far apart there, or their spacing beyond
	// the limit. It has SetSize bytes; what it held before is cleared.
	Failed Set
	// Seen, unless it is nil, receives the largest difference seen in each block
	// that was decoded. Others keep what they have.
	Seen []float32
}

func (p *Pass) has(block int) bool { return p.Which == nil || p.Which.Has(block) }

// beyond tells whether a block's spacing is beyond its limit.
func (p *Pass) beyond(block int, spacing float32) bool {
	return p.Limits != nil && !(spacing <= p.Limits[block])
}

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

// longError is for so many bytes too many.
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
	if err := validSpacing(float(code)); err != nil {
		return 0, err
	}
	if n < BlockLen && padded(code[headSize:size], n, l.bits(p.Width)) {
		return 0, ErrPadding
	}
	return size, nil
}
