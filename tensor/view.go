package tensor

// View returns b, little-endian float32, as a vector over the same memory, so
// that values which arrived as bytes can be computed on, or made in the place
// from which they are sent, without a copy. Writing to one writes to the other.
//
// It reports false, and the caller copies with FromBytes or AppendBytes, where a
// view is impossible: on a big-endian machine, under the purego build tag, if b
// is not aligned to four bytes or not a whole number of values. The values may be
// NaN or infinite if b is another machine's.
func View(b []byte) (Vector, bool) {
	if len(b)%ValueSize != 0 {
		return nil, false
	}
	return vectorView(b)
}
