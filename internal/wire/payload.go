package wire

import (
	"fmt"
	"math"
)

// Message is the payload of a type of frame. Each message also has a method Decode, which reads a payload into it and
// reuses the memory of its slices. If Decode fails, with ErrMessage, the message must not be used.
type Message interface {
	// Type is the type of the frame that carries the message.
	Type() Type
	// Append appends the encoded message to dst. It cannot fail: if a field is out of bounds, Decode of the result,
	// or Seal before it, returns an error; the result never means something else.
	Append(dst []byte) []byte
}

// Pack builds the whole frame of a message in buf, whose contents it drops. The exchange is zero for messages outside
// of an exchange. It fails as Seal does. It allocates only if buf is too small; converting the message to a Message
// allocates too.
func Pack[M Message](buf []byte, exchange uint64, m M) ([]byte, error) {
	frame := m.Append(Reserve(buf))
	if err := Seal(frame, Header{Type: m.Type(), Exchange: exchange}); err != nil {
		return nil, err
	}
	return frame, nil
}

// MaxRunName is the most bytes in a run's name.
const MaxRunName = 64

// CheckRun returns an error unless run is a valid name of a run: 1 to MaxRunName bytes of UTF-8 without control
// characters.
func CheckRun(run string) error {
	switch {
	case run == "":
		return fmt.Errorf("run name is empty: %w", ErrMessage)
	case len(run) > MaxRunName:
		return fmt.Errorf("run name of %d bytes, at most %d: %w", len(run), MaxRunName, ErrMessage)
	case !clean(run):
		return fmt.Errorf("run name %q is not printable UTF-8: %w", run, ErrMessage)
	}
	return nil
}

// clean tells whether a text may be shown to a user and written to a log.
func clean(text string) bool {
	for _, r := range text {
		if !printableRune(r) {
			return false
		}
	}
	return true
}

// printableRune rejects control characters, which could forge lines of a log or control a terminal, and U+FFFD, which a
// range loop also returns for invalid UTF-8.
func printableRune(r rune) bool {
	return r >= ' ' && (r < 0x7f || r > 0x9f) && r != '\uFFFD'
}

// Coder writes the fields of a payload, or reads them, one after the other. A message lists its fields once for both
// directions, so that they cannot differ. When it reads, it keeps the first fault and returns zeros from then on:
// call Finish before any field is used. When it writes, it checks nothing.
type Coder struct {
	what    Type
	Reading bool
	rest    []byte // bytes still to be read
	out     []byte // bytes written
	err     error
}

// BodyWriter and BodyReader code the content of a frame's type, or a part of it, for other packages. Written returns
// the written bytes.
func BodyWriter() Coder                       { return writer(nil) }
func BodyReader(what Type, body []byte) Coder { return reader(what, body) }
func (c *Coder) Written() []byte              { return c.out }

func writer(dst []byte) Coder                { return Coder{out: dst} }
func reader(what Type, payload []byte) Coder { return Coder{what: what, Reading: true, rest: payload} }

// Fault stores a fault, unless there is one already.
func (c *Coder) Fault(format string, args ...any) {
	if c.err == nil && c.Reading {
		c.err = malformed(c.what, format, args...)
	}
}

// malformed is the error of a payload.
func malformed(what Type, format string, args ...any) error {
	return fmt.Errorf("wire: %v: %s: %w", what, fmt.Sprintf(format, args...), ErrMessage)
}

// take returns the next n bytes, or nil if there are fewer.
func (c *Coder) take(n int) []byte {
	if c.err == nil && len(c.rest) < n {
		c.Fault("%d bytes missing", n-len(c.rest))
	}
	if c.err != nil {
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

// Finish returns the first fault; bytes left over are one.
func (c Coder) Finish() error {
	if len(c.rest) > 0 {
		c.Fault("%d bytes too many", len(c.rest))
	}
	return c.err
}

// uint codes a number in size bytes, little-endian.
func (c *Coder) uint(v uint64, size int) uint64 {
	if !c.Reading {
		for range size {
			c.out, v = append(c.out, byte(v)), v>>8
		}
		return 0
	}
	read := uint64(0)
	for i, b := range c.take(size) {
		read |= uint64(b) << (8 * i)
	}
	return read
}

// number codes a number in the size of its type.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, v *T, size int) {
	if read := c.uint(uint64(*v), size); c.Reading {
		*v = T(read)
	}
}

// Uint8 codes a number, as Uint32 and Uint64 do.
func (c *Coder) Uint8(v *uint8)   { number(c, v, 1) }
func (c *Coder) uint16(v *uint16) { number(c, v, 2) }
func (c *Coder) Uint32(v *uint32) { number(c, v, 4) }
func (c *Coder) Uint64(v *uint64) { number(c, v, 8) }

func (c *Coder) uint64s(values ...*uint64) {
	for _, v := range values {
		c.Uint64(v)
	}
}

// Count codes the number of elements that follow, from least to most, in size bytes. A number too large for these
// bytes is written as the largest that fits, which is above every bound.
func (c *Coder) Count(n, size, least, most int, what string) int {
	if !c.Reading {
		c.uint(uint64(min(n, 1<<(8*size)-1)), size)
		return n
	}
	n = int(c.uint(0, size))
	if n < least || n > most {
		c.Fault("%d %s, not within %d and %d", n, what, least, most)
		return 0
	}
	return n
}

// Bool codes a byte that is 0 or 1.
func (c *Coder) Bool(v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	if c.Uint8(&n); n > 1 {
		c.Fault("%d is neither 0 nor 1", n)
	}
	*v = n == 1
}

// Float codes a finite number.
func (c *Coder) Float(v *float64) {
	bits := math.Float64bits(*v)
	c.Uint64(&bits)
	if *v = math.Float64frombits(bits); !(math.Abs(*v) <= math.MaxFloat64) && c.Reading { // true for NaN
		c.Fault("%v where a finite number is due", *v)
		*v = 0
	}
}

// Fixed codes len(b) bytes.
func (c *Coder) Fixed(b []byte) {
	if c.Reading {
		clear(b)
		copy(b, c.take(len(b)))
		return
	}
	c.out = append(c.out, b...)
}

// Bytes codes the number of bytes, in size bytes, and then the bytes. Bytes that are read are a part of the payload.
func (c *Coder) Bytes(b *[]byte, size, least, most int, what string) {
	n := c.Count(len(*b), size, least, most, what)
	if c.Reading {
		*b = c.take(n)
		return
	}
	c.out = append(c.out, *b...)
}

// copied codes bytes as Bytes does, but copies what it reads into the memory of *b.
func (c *Coder) copied(b *[]byte, size, least, most int, what string) {
	read := *b
	if c.Bytes(&read, size, least, most, what); c.Reading {
		*b = append((*b)[:0], read...)
	}
}

// Remaining codes the rest of the payload, which may have fields of a later release. Bytes that are read are a part
// of the payload.
func (c *Coder) Remaining(b *[]byte) {
	if !c.Reading {
		c.out = append(c.out, *b...)
		return
	}
	*b = nil
	if n := len(c.rest); c.err == nil && n > 0 {
		*b = c.take(n)
	}
}

// Text codes a text that may be shown to a user.
func (c *Coder) Text(v *string, least, most int) {
	n := c.Count(len(*v), 1, least, most, "bytes of text")
	if !c.Reading {
		c.out = append(c.out, *v...)
		return
	}
	if *v = string(c.take(n)); !clean(*v) {
		c.Fault("text %q is not printable UTF-8", *v)
	}
}

// run codes the name of a run.
func (c *Coder) run(v *string) { c.Text(v, 1, MaxRunName) }
