package coding

import "github.com/seed-97356399/murmuration/internal/kernel"

// BlockLen is the number of values in a block; the last block of a slice may have fewer. It is part of the format.
const BlockLen = kernel.Block

// Blocks is the number of blocks of n values.
func Blocks(n int) int { return (n + BlockLen - 1) / BlockLen }

// blockLen is the number of values in block i of n values.
func blockLen(i, n int) int { return min(BlockLen, n-i*BlockLen) }

// workspace is the memory for coding one block.
type workspace struct {
	low, high [BlockLen]byte
	values    [BlockLen]float32
}
