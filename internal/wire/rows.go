package wire

// Limits of what is said about rows.
const (
	// MaxKind is the most bytes of the kind of rows.
	MaxKind = 64
	// MaxAbout is the most bytes of what a holder tells of its rows.
	MaxAbout = 2 << 10
	// MaxRowsData is the most bytes of rows in one ROWS, and MaxRowsTotal in all that answer one WANT.
	MaxRowsData  = 128 << 10
	MaxRowsTotal = 64 << 20
	// MaxWantedRows is the most rows that one WANT asks for.
	MaxWantedRows = 1 << 16
	// MaxHops is the most holders through which a row comes.
	MaxHops = 4

	maxHolding = 1 + MaxKind + 8 + 8 + 8 + 2 + MaxAbout
	wantSize   = 4 + 1 + 1 + 8
	maxRows    = 4 + 4 + 4 + 4 + MaxRowsData
	doneSize   = 1
)

// Holding is what both ends of a stream of rows say first: of which kind the rows are that they want, or hold.
type Holding struct {
	// Kind is what rows are; empty of a taker that takes any.
	Kind string
	// Rows is how many a holder has, and HeldOut how many others that nobody trains on.
	Rows, HeldOut uint64
	// Life is drawn at random by each holder: what it has handed out counts from its start.
	Life uint64
	// About is 0 to MaxAbout bytes that the holder tells those that know the kind.
	About []byte
}

// Type is TypeHolding.
func (Holding) Type() Type { return TypeHolding }

// Append implements Message.
func (m Holding) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Holding) Decode(payload []byte) error {
	return m.fields(reader(TypeHolding, payload)).Finish()
}

func (m *Holding) fields(c Coder) Coder {
	c.Text(&m.Kind, 0, MaxKind)
	c.uint64s(&m.Rows, &m.HeldOut, &m.Life)
	c.copied(&m.About, 2, 0, MaxAbout, "bytes about rows")
	return c
}

// Want asks for rows. The frame's header numbers the question in its stream.
type Want struct {
	// Rows is the most that are wanted, 1 to MaxWantedRows.
	Rows uint32
	// Hops is through how many holders they may come, 1 to MaxHops: 1 are the receiver's own.
	Hops uint8
	// HeldOut asks for those that nobody trains on, from First on.
	HeldOut bool
	First   uint64
}

// Type is TypeWant.
func (Want) Type() Type { return TypeWant }

// Append implements Message.
func (m Want) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Want) Decode(payload []byte) error { return m.fields(reader(TypeWant, payload)).Finish() }

func (m *Want) fields(c Coder) Coder {
	if c.Uint32(&m.Rows); m.Rows == 0 || m.Rows > MaxWantedRows {
		c.Fault("%d rows: want 1 to %d", m.Rows, MaxWantedRows)
	}
	if c.Uint8(&m.Hops); m.Hops == 0 || m.Hops > MaxHops {
		c.Fault("%d hops: want 1 to %d", m.Hops, MaxHops)
	}
	c.Bool(&m.HeldOut)
	if c.Uint64(&m.First); m.First > 0 && !m.HeldOut {
		c.Fault("rows from %d on, which only those that are held out have an order for", m.First)
	}
	return c
}

// Rows answers a WANT, in its header's number: a part of the bytes of so many rows.
type Rows struct {
	// Rows is how many they are, 0 if there are none now. Own is how many of them are the sender's own.
	Rows, Own uint32
	// Of Total bytes, 0 to MaxRowsTotal, these begin at Offset.
	Offset, Total uint32
	// Data is 0 to MaxRowsData bytes, and a part of the payload if it was decoded.
	Data []byte
}

// Type is TypeRows.
func (Rows) Type() Type { return TypeRows }

// Append implements Message.
func (m Rows) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Rows) Decode(payload []byte) error { return m.fields(reader(TypeRows, payload)).Finish() }

func (m *Rows) fields(c Coder) Coder {
	c.Uint32(&m.Rows)
	if c.Uint32(&m.Own); m.Own > m.Rows || m.Rows > MaxWantedRows {
		c.Fault("%d own of %d rows", m.Own, m.Rows)
	}
	c.Uint32(&m.Offset)
	c.Uint32(&m.Total)
	if n := uint64(len(c.rest)); c.Reading && (n > MaxRowsData || m.Total > MaxRowsTotal || uint64(m.Offset)+n > uint64(m.Total)) {
		c.Fault("%d bytes from byte %d of %d, at most %d of %d", n, m.Offset, m.Total, MaxRowsData, MaxRowsTotal)
	}
	if c.Reading && (len(c.rest) == 0) != (m.Total == 0) {
		c.Fault("no bytes of %d", m.Total)
	}
	c.Remaining(&m.Data)
	return c
}

// Done tells what became of the rows that answered a WANT of the header's number.
type Done struct {
	// Fate is 1 if they were trained on, 2 if nobody has looked at them, 3 if they are lost.
	Fate uint8
}

// Type is TypeDone.
func (Done) Type() Type { return TypeDone }

// Append implements Message.
func (m Done) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Done) Decode(payload []byte) error { return m.fields(reader(TypeDone, payload)).Finish() }

func (m *Done) fields(c Coder) Coder {
	if c.Uint8(&m.Fate); m.Fate < 1 || m.Fate > 3 {
		c.Fault("fate %d", m.Fate)
	}
	return c
}
