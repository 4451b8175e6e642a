package tensor

// View returns b, little-endian float32, as a vector over the same memory. So values can be computed on where they
// arrived as bytes, or made where they are sent from, without a copy. Writing to one writes to the other.
//
// It reports false where a view is impossible: on a big-endian machine, under the purego build tag, or if b is not
// aligned to four bytes or not a whole number of values. The caller then copies with FromBytes or AppendBytes. Bytes
// of another machine may hold NaN or infinity.
func View(b []byte) (Vector, bool) {
	if len(b)%ValueSize != 0 {
		return nil, false
	}
	return vectorView(b)
}
