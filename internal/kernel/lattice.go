package kernel

// The kernels of lattice codes take at most Block values at a time. An index is
//
//	nearest(v) = the integer nearest to the float32 v, ties to even,
//	             or -2^31 if that is no int32 or v is NaN
//
// and sum is the CRC32C of all indices as little-endian int32.

// LatticeIndices writes the lowest byte of the index of each value, and returns
// the sum of the indices and the largest magnitude of the values, as MaxAbs does:
//
//	for i := range x {
//		z := nearest(x[i] * inverse)
//		low[i] = byte(z)
//		most = max(most, abs(x[i]))
//	}
func LatticeIndices(low []byte, x []float32, inverse float32) (sum uint32, most float32) {
	return latticeIndices(low[:len(x)], x, inverse)
}

// LatticeHigh writes the byte above the lowest of the index of each value:
//
//	for i := range x { high[i] = byte(nearest(x[i]*inverse) >> 8) }
func LatticeHigh(high []byte, x []float32, inverse float32) {
	latticeHigh(high[:len(x)], x, inverse)
}

// LatticeValues finds the indices whose lowest bits are given and that are nearest
// to those of a reference, of two that are equally near the lower one, and writes
// the values that they stand for. It returns the sum of the indices.
//
//	for i := range dst {
//		r := nearest(reference[i] * inverse)
//		code := int32(low[i]) + int32(high[i])<<8
//		least := r - 1<<(bits-1)
//		z := least + (code-least)&(1<<bits-1)
//		dst[i] = spacing * float32(z)
//	}
//
// where int32 wrap around. Bits of the code above the lowest are ignored. bits is 1 to 16; high may be
// nil if it is at most 8. dst may be reference.
func LatticeValues(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) (sum uint32) {
	low, reference = low[:len(dst)], reference[:len(dst)]
	half, mask := uint32(1)<<bits/2, uint32(1)<<bits-1
	if bits <= 8 {
		return latticeValues(dst, low, reference, spacing, inverse, half, mask)
	}
	return latticeValuesWide(dst, low, high[:len(dst)], reference, spacing, inverse, half, mask)
}

// LatticeDifference is LatticeValues for those who want only the difference from
// the reference, which is not dst. It writes
//
//	dst[i] = spacing*float32(z) - reference[i]
//
// and returns the largest magnitude of these too, and the sum of their squares, in
// float32 and in an order that is the same on all CPUs. Squares of what is not
// between 1e-22 and 1e18 may be lost or infinite.
func LatticeDifference(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) (sum uint32, peak, squares float32) {
	low, reference = low[:len(dst)], reference[:len(dst)]
	half, mask := uint32(1)<<bits/2, uint32(1)<<bits-1
	if bits <= 8 {
		return latticeDifference(dst, low, reference, spacing, inverse, half, mask)
	}
	return latticeDifferenceWide(dst, low, high[:len(dst)], reference, spacing, inverse, half, mask)
}
