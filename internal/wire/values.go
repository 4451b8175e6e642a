package wire

import "math"

// Sizes of payloads, in bytes.
const (
	valuesSize = 32 + 8 + 8 + 8 + 4
	maxServed  = 8 + 8 + 1 + MaxPeerName
)

// Values asks for a run of the parameters that servers serve, or brings a gradient for it. SERVED answers.
type Values struct {
	// Layout is the hash of the model's layout, in which First is the first value of the run and Count the number of its
	// values, at least 1.
	Layout       [HashSize]byte
	First, Count uint64
	// Version is that of the parameters at which a gradient was computed, and Samples the number of samples over which it
	// is the mean; 0 samples ask for parameters.
	Version uint64
	Samples uint32
}

func (Values) Type() Type                     { return TypeValues }
func (m Values) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Values) Decode(payload []byte) error { return m.fields(reader(TypeValues, payload)).Finish() }

func (m *Values) fields(c Coder) Coder {
	c.Fixed(m.Layout[:])
	c.uint64s(&m.First, &m.Count, &m.Version)
	c.Uint32(&m.Samples)
	if m.Count == 0 || m.First > math.MaxInt64 || m.Count > math.MaxInt64-m.First {
		c.Fault("%d values from %d on", m.Count, m.First)
	}
	return c
}

// Served answers a VALUES. Where the sender serves the beginning of the run, the values follow in STATE-SLICE frames, from it or
// from the one that asked. Once it has taken a gradient, it answers again.
type Served struct {
	// Version is that of the parameters. Of their run, the sender serves the first Count values; if that is 0, Server is the
	// id of the member that does, empty if the sender does not know it.
	Version, Count uint64
	Server         string
}

func (Served) Type() Type                     { return TypeServed }
func (m Served) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Served) Decode(payload []byte) error { return m.fields(reader(TypeServed, payload)).Finish() }

func (m *Served) fields(c Coder) Coder {
	c.uint64s(&m.Version, &m.Count)
	c.Text(&m.Server, 0, MaxPeerName)
	return c
}
