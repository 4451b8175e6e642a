package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Channels are computed in blocks of the widths for which there are kernels. Weights are stored block by block; a
// last block that is wider than its channels is filled with zeros.
const (
	wideBlock   = 16
	narrowBlock = 8
)

// block is some of the channels of a picture.
type block struct {
	from, count int // the channels
	width       int // of the kernel; count or more
}

// next returns the block after b in a picture with that many channels; its count is 0 after the last.
func (b block) next(channels int) block {
	b.from += b.count
	b.count = min(wideBlock, channels-b.from)
	if b.width = wideBlock; b.count <= narrowBlock {
		b.width = narrowBlock
	}
	return b
}

// blockedLen is the number of values of rows with that many channels when they are stored in blocks.
func blockedLen(rows, channels int) int {
	return rows * (channels + narrowBlock - 1) / narrowBlock * narrowBlock
}

// of returns the part of blocked rows that belongs to b.
func (b block) of(blocked tensor.Vector, rows int) tensor.Vector {
	return blocked[b.from*rows : (b.from+b.width)*rows]
}

// gather copies the block's channels of rows to blocked, which has only this block.
func (b block) gather(blocked, rows tensor.Vector, channels int) {
	for from := b.from; from < len(rows); from += channels {
		copy(blocked, rows[from:from+b.count])
		blocked = blocked[b.width:]
	}
}

func (b block) scatter(rows, blocked tensor.Vector, channels int) {
	for from := b.from; from < len(rows); from += channels {
		copy(rows[from:from+b.count], blocked)
		blocked = blocked[b.width:]
	}
}

func (b block) add(rows, blocked tensor.Vector, channels int) {
	for from := b.from; from < len(rows); from += channels {
		kernel.Add(rows[from:from+b.count], blocked[:b.count])
		blocked = blocked[b.width:]
	}
}

func (b block) convolve(y, x, w tensor.Vector, c kernel.Windows) {
	if b.width == narrowBlock {
		kernel.Convolve8(y, x, w, c)
	} else {
		kernel.Convolve16(y, x, w, c)
	}
}

func (b block) convolveGradient(w, x, y tensor.Vector, c kernel.Windows) {
	if b.width == narrowBlock {
		kernel.ConvolveGradient8(w, x, y, c)
	} else {
		kernel.ConvolveGradient16(w, x, y, c)
	}
}
