package wire

import "slices"

// MaxInDoubt is the most slices of one exchange that may be under way, over all
// its lanes, and so the most that a cut can leave in doubt.
const MaxInDoubt = 120

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

// Append implements Message.
func (m Status) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Status) Decode(payload []byte) error { return m.fields(reader(TypeStatus, payload)).Finish() }

func (m *Status) fields(c Coder) Coder {
	c.Uint64(&m.Incarnation)
	n := c.Count(len(m.Slices), 1, 1, MaxInDoubt, "slices")
	if c.Reading {
		m.Slices = slices.Grow(m.Slices[:0], n)[:n]
	}
	for i := range m.Slices {
		c.Uint32(&m.Slices[i])
	}
	return c
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

// Append implements Message.
func (m Settled) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Settled) Decode(payload []byte) error {
	return m.fields(reader(TypeSettled, payload)).Finish()
}

func (m *Settled) fields(c Coder) Coder {
	c.Bool(&m.Known)
	if c.Uint64(&m.Applied); !m.Known && m.Applied != 0 {
		c.Fault("slices %#x of an exchange that is not known", m.Applied)
	}
	return c
}
