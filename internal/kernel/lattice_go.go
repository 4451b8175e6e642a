package kernel

import (
	"hash/crc32"
	"math"
)

// nearest is what the processor's conversion gives under its default rounding.
func nearest(v float32) int32 {
	const limit = 1 << 31
	if r := math.RoundToEven(float64(v)); r >= -limit && r < limit {
		return int32(r)
	}
	return math.MinInt32
}

// checksum is a CRC32C under way. It takes bytes one by one: hash/crc32 would have
// the indices of each block on the heap.
type checksum struct {
	table *crc32.Table
	rest  uint32
}

func newChecksum() checksum { return checksum{crc32.MakeTable(crc32.Castagnoli), ^uint32(0)} }

func (c *checksum) add(z int32) {
	c.rest ^= uint32(z)
	for range 4 {
		c.rest = c.table[byte(c.rest)] ^ c.rest>>8
	}
}

func (c *checksum) sum() uint32 { return ^c.rest }

func latticeIndicesGo(low []byte, x []float32, inverse float32) (sum uint32, most float32) {
	all := newChecksum()
	largest := uint32(0)
	for i, v := range x {
		largest = max(largest, math.Float32bits(v)&magnitudeBits)
		z := nearest(v * inverse)
		low[i] = byte(z)
		all.add(z)
	}
	return all.sum(), math.Float32frombits(largest)
}

func latticeHighGo(high []byte, x []float32, inverse float32) {
	for i, v := range x {
		high[i] = byte(nearest(v*inverse) >> 8)
	}
}

// decodeIndex returns the index with the bits of code nearest to r. Half is the
// highest of these bits, and mask all of them.
func decodeIndex(code, r int32, half, mask uint32) int32 {
	least := r - int32(half)
	return least + (code-least)&int32(mask)
}

func latticeValuesGo(dst []float32, low []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32) {
	var none [Block]byte
	return latticeValuesWideGo(dst, low, none[:], reference, spacing, inverse, half, mask)
}

func latticeValuesWideGo(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32) {
	all := newChecksum()
	for i, v := range reference[:len(dst)] {
		z := decodeIndex(int32(low[i])+int32(high[i])<<8, nearest(v*inverse), half, mask)
		all.add(z)
		dst[i] = spacing * float32(z)
	}
	return all.sum()
}

func latticeDifferenceGo(dst []float32, low []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32, peak, squares float32) {
	var none [Block]byte
	return latticeDifferenceWideGo(dst, low, none[:], reference, spacing, inverse, half, mask)
}

func latticeDifferenceWideGo(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32, peak, squares float32) {
	sum = latticeValuesWideGo(dst, low, high, reference, spacing, inverse, half, mask)
	var sums [lanes]float32
	largest := uint32(0)
	// Vectors take the four quarters of a block in turn, whatever their width, so
	// that the additions come in this order.
	for from := 0; from < Block/quarters; from += lanes {
		for quarter := 0; quarter < Block; quarter += Block / quarters {
			for lane := range lanes {
				i := quarter + from + lane
				if i >= len(dst) {
					break
				}
				e := dst[i] - reference[i]
				dst[i] = e
				largest = max(largest, math.Float32bits(e)&magnitudeBits)
				sums[lane] += float32(e * e)
			}
		}
	}
	return sum, math.Float32frombits(largest), total(&sums)
}

// The order of the sums of floats over a block.
const (
	lanes    = 16 // are summed each for itself
	quarters = 4
)

// total adds the upper half of the lanes to the lower until one is left.
func total(sums *[lanes]float32) float32 {
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0]
}
