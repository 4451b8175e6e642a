package wire

import "encoding/binary"

// MaxSigned is the most bytes of a member record with its signature: what
// memberlist carries.
const MaxSigned = 512

const maxRecord = 8 + 2 + MaxSigned

// Record is a member's word on itself, ahead of gossip. A peer that refuses a
// proposal for its role sends it before the REFUSE, so that the other can correct
// its view at once.
type Record struct {
	// View is a digest of the membership that the sender sees.
	View uint64
	// Signed is the sender's member record as it spreads it, signature included: 1
	// to MaxSigned bytes, which mean something to the membership only.
	Signed []byte
}

// Type is TypeRecord.
func (Record) Type() Type { return TypeRecord }

// Append appends the encoded message to dst.
func (m Record) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.View)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(min(len(m.Signed), MaxSigned+1)))
	return append(dst, m.Signed...)
}

// Decode reads a payload into m; Signed is a copy. If it fails, with ErrMessage, m is
// meaningless.
func (m *Record) Decode(payload []byte) error {
	c := cursor{what: TypeRecord, rest: payload}
	m.View = c.uint64()
	n := int(c.uint16())
	if n == 0 || n > MaxSigned {
		c.fault("a record of %d bytes, not within 1 and %d", n, MaxSigned)
	}
	m.Signed = append([]byte(nil), c.take(n)...)
	return c.finish()
}
