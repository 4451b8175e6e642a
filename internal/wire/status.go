package wire

import "slices"

// MaxInDoubt bounds the slices of one exchange that are under way, over all its lanes, and so the slices that a
// broken connection leaves in doubt.
const MaxInDoubt = 120

// Sizes of payloads, in bytes.
const (
	maxStatus   = 8 + 1 + 4*MaxInDoubt
	settledSize = 1 + 8
)

// Status asks the peer that initiated an exchange which slices it has applied, of those that a broken stream left in
// doubt. The header has the number of the exchange. It is the first frame of a stream, or comes between PROPOSE and
// its answer.
type Status struct {
	// Incarnation is the receiver's incarnation in which it initiated the exchange.
	Incarnation uint64
	// Slices are the indices of the slices in doubt, 1 to MaxInDoubt of them.
	Slices []uint32
}

func (Status) Type() Type                     { return TypeStatus }
func (m Status) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
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

// Settled answers a Status. After it has been sent, its sender applies no further slice of that exchange.
type Settled struct {
	// Known tells whether the sender has a record of the exchange in that incarnation; if not, nobody knows which
	// slices it applied.
	Known bool
	// Applied has bit i set if slice Slices[i] of the Status has been applied. All further bits mean nothing.
	Applied uint64
}

func (Settled) Type() Type                 { return TypeSettled }
func (m Settled) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
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
