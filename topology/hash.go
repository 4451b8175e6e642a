package topology

// The hash of an id is part of the overlay's definition: peers of different
// versions and processors must order members alike, so it is fixed here and held
// by golden values, instead of taken from a library that may change it.

// FNV-1a, 64 bits (Fowler, Noll and Vo, 1991).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// fold mixes the bytes of s into the running FNV-1a state h.
func fold(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// foldByte mixes one byte into the running FNV-1a state h.
func foldByte(h uint64, b byte) uint64 {
	return (h ^ uint64(b)) * fnvPrime
}

// finish spreads every bit of the state over all others (the finalizer of
// MurmurHash3, Appleby, 2011). FNV alone leaves the high bits of ids that differ
// in their last character nearly equal, and the high bits decide the order.
func finish(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

// hashID places an id in the order of members.
func hashID(id PeerID) uint64 {
	return finish(fold(fnvOffset, string(id)))
}
