package tensor

import (
	"crypto/sha256"
	"encoding/binary"
)

// hashDomain opens the hashed bytes; its number changes with their form.
const hashDomain = "murmuration layout 1\n"

// Hash identifies the layout: equal hashes mean equal names, shapes, kinds and
// sharing in the same order, on every machine and in every version. It is the
// SHA-256 of
//
//	"murmuration layout 1\n"
//	uint32 number of ranges
//	for each range:
//	    uint32 length of the name, the name
//	    uint8 kind, uint8 sharing
//	    uint32 number of dimensions, uint64 each dimension
//
// with all integers in little-endian order.
func (l *Layout) Hash() [32]byte { return l.hash }

func (l *Layout) digest() [32]byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(hashDomain), uint32(len(l.ranges)))
	for _, r := range l.ranges {
		b = le.AppendUint32(b, uint32(len(r.Name)))
		b = append(b, r.Name...)
		b = append(b, byte(r.Kind), byte(r.Sharing))
		b = le.AppendUint32(b, uint32(len(r.Shape)))
		for _, d := range r.Shape {
			b = le.AppendUint64(b, uint64(d))
		}
	}
	return sha256.Sum256(b)
}
