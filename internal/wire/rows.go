package wire

import "slices"

// Limits of what is said about rows.
const (
	// MaxRowParts is the most parts of an answer, and MaxRows the most rows of all of them.
	MaxRowParts = 16
	MaxRows     = 1 << 16
	// MaxRowsData is the most bytes of rows in one ROWS, and MaxRowsTotal in all that answer one WANT.
	MaxRowsData  = 128 << 10
	MaxRowsTotal = 64 << 20
	// MaxHops is the most holders through which a row comes.
	MaxHops = 4

	maxWant  = 1 + 8 + 1 + 4*MaxRowParts
	maxRows  = 2*(1+4*MaxRowParts) + MaxRowsData
	doneSize = 2
)

// Want asks for rows.
type Want struct {
	// Hops is through how many holders they may come, at most MaxHops: 1 are the receiver's own. 0 asks for the bytes that it
	// tells about its rows, from First on, as one part with one row.
	Hops  uint8
	First uint64
	// Rows is the most that are wanted in each part of the answer, of 1 to MaxRowParts: 1 to MaxRows in all.
	Rows []uint32
}

func (Want) Type() Type                     { return TypeWant }
func (m Want) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Want) Decode(payload []byte) error { return m.fields(reader(TypeWant, payload)).Finish() }

func (m *Want) fields(c Coder) Coder {
	if c.Uint8(&m.Hops); m.Hops > MaxHops {
		c.Fault("%d hops: want at most %d", m.Hops, MaxHops)
	}
	if c.Uint64(&m.First); m.First > 0 && m.Hops > 0 {
		c.Fault("rows from %d on, which have no order", m.First)
	}
	c.uint32s(&m.Rows, MaxRowParts, "parts")
	if n := total(m.Rows); n == 0 || n > MaxRows {
		c.Fault("%d rows: want 1 to %d", n, MaxRows)
	}
	return c
}

// Rows answers a WANT. The first frame of an answer says what is in its parts; their bytes, joined, are the data of that frame
// and of as many more as it takes.
type Rows struct {
	// Rows are how many there are in each part, 0 if there are none now, and Bytes are those of each part. Both are empty
	// but in the first frame.
	Rows, Bytes []uint32
	// Data is 0 to MaxRowsData bytes, and a part of the payload if it was decoded.
	Data []byte
}

func (Rows) Type() Type                     { return TypeRows }
func (m Rows) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Rows) Decode(payload []byte) error { return m.fields(reader(TypeRows, payload)).Finish() }

func (m *Rows) fields(c Coder) Coder {
	c.uint32s(&m.Rows, MaxRowParts, "parts")
	c.uint32s(&m.Bytes, MaxRowParts, "parts with bytes")
	if rows, bytes := total(m.Rows), total(m.Bytes); len(m.Rows) != len(m.Bytes) || rows > MaxRows || bytes > MaxRowsTotal {
		c.Fault("%d rows in %d parts, %d bytes in %d", rows, len(m.Rows), bytes, len(m.Bytes))
	}
	for i := range min(len(m.Rows), len(m.Bytes)) {
		if (m.Rows[i] == 0) != (m.Bytes[i] == 0) {
			c.Fault("%d rows in %d bytes", m.Rows[i], m.Bytes[i])
		}
	}
	if n := len(c.rest); c.Reading && n > MaxRowsData {
		c.Fault("%d bytes, at most %d", n, MaxRowsData)
	}
	c.Remaining(&m.Data)
	return c
}

// Done tells what became of the rows of an answer: so many parts, from the first on, were trained on, so many behind them are
// lost, and nobody has looked at the others.
type Done struct{ Trained, Lost uint8 }

func (Done) Type() Type                     { return TypeDone }
func (m Done) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Done) Decode(payload []byte) error { return m.fields(reader(TypeDone, payload)).Finish() }

func (m *Done) fields(c Coder) Coder {
	c.Uint8(&m.Trained)
	if c.Uint8(&m.Lost); int(m.Trained)+int(m.Lost) > MaxRowParts {
		c.Fault("%d and %d parts, at most %d", m.Trained, m.Lost, MaxRowParts)
	}
	return c
}

// uint32s codes a list of numbers, in the memory of those before.
func (c *Coder) uint32s(list *[]uint32, most int, what string) {
	if n := c.Count(len(*list), 1, 0, most, what); c.Reading {
		*list = slices.Grow((*list)[:0], n)[:n]
	}
	for i := range *list {
		c.Uint32(&(*list)[i])
	}
}

func total(list []uint32) (sum uint64) {
	for _, n := range list {
		sum += uint64(n)
	}
	return sum
}
