package kernel

// BlockMaxAbs is MaxAbs of each block of x:
//
//	for j := range dst { dst[j] = MaxAbs(x[j*block:min((j+1)*block, len(x))]) }
//
// Codecs that keep one scale for each block take it from here. block is at least
// 1, and dst has a place for every block, of which the last may be short.
func BlockMaxAbs(dst, x []float32, block int) {
	for j := range dst[:blocks(len(x), block)] {
		n := min(block, len(x))
		dst[j] = maxAbs(x[:n])
		x = x[n:]
	}
}

// BlockRange writes the smallest and the largest value of each block of x:
//
//	for j := range lo {
//		b := x[j*block:min((j+1)*block, len(x))]
//		lo[j], hi[j] = slices.Min(b), slices.Max(b)
//	}
//
// Negative zero is smaller than zero. If a block holds a NaN, its lo or its hi is
// NaN. block is at least 1, and lo and hi have a place for every block, of which
// the last may be short.
func BlockRange(lo, hi, x []float32, block int) {
	hi = hi[:blocks(len(x), block)]
	for j := range lo[:len(hi)] {
		n := min(block, len(x))
		lo[j], hi[j] = extent(x[:n])
		x = x[n:]
	}
}

// blocks returns how many blocks n values have.
func blocks(n, block int) int {
	count := n / block
	if n%block > 0 {
		count++
	}
	return count
}
