package wire

import "encoding/binary"

// MaxInDoubt is the most slices of one exchange that may be under way, over all
// its lanes, and so the most that a cut can leave in doubt.
const MaxInDoubt = 64

// Sizes of payloads, in bytes.
const (
	maxStatus   = 8 + 1 + 4*MaxInDoubt
	settledSize = 1 + 8
)

// Status asks the peer that initiated an exchange which slices it has applied of
// those that a broken stream left in doubt. The header names the exchange. It
// comes as the first frame of a stream, or between PROPOSE and its answer.
type Status struct {
	// Incarnation is the life of the receiver in which it initiated the exchange.
	Incarnation uint64
	// Slices are the indices of the slices in doubt, 1 to MaxInDoubt of them.
	Slices []uint32
}

// Type is TypeStatus.
func (Status) Type() Type { return TypeStatus }

// Append appends the encoded message to dst.
func (m Status) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = append(dst, uint8(min(len(m.Slices), 255)))
	for _, slice := range m.Slices {
		dst = binary.LittleEndian.AppendUint32(dst, slice)
	}
	return dst
}

// Decode reads a payload into m, whose Slices it reuses. If it fails, with
// ErrMessage, m is meaningless.
func (m *Status) Decode(payload []byte) error {
	c := cursor{what: TypeStatus, rest: payload}
	m.Incarnation = c.uint64()
	n := int(c.uint8())
	if n == 0 || n > MaxInDoubt {
		c.fault("%d slices, not within 1 and %d", n, MaxInDoubt)
	}
	m.Slices = m.Slices[:0]
	for indices := c.take(4 * n); len(indices) > 0; indices = indices[4:] {
		m.Slices = append(m.Slices, binary.LittleEndian.Uint32(indices))
	}
	return c.finish()
}

// Settled answers a Status. Once it is sent, its sender applies no slice of that
// exchange any more.
type Settled struct {
	// Known tells whether the sender has a record of the exchange in the
	// incarnation asked for; if not, what it applied cannot be told.
	Known bool
	// Applied has bit i set if the i-th of the slices asked for, from 0, has been
	// applied. The bits beyond them mean nothing.
	Applied uint64
}

// Type is TypeSettled.
func (Settled) Type() Type { return TypeSettled }

// Append appends the encoded message to dst.
func (m Settled) Append(dst []byte) []byte {
	known := uint8(0)
	if m.Known {
		known = 1
	}
	return binary.LittleEndian.AppendUint64(append(dst, known), m.Applied)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Settled) Decode(payload []byte) error {
	c := cursor{what: TypeSettled, rest: payload}
	known := c.uint8()
	m.Known = known == 1
	m.Applied = c.uint64()
	if known > 1 || (known == 0 && m.Applied != 0) {
		c.fault("known is %d with slices %#x", known, m.Applied)
	}
	return c.finish()
}
