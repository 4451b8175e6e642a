package wire

import (
	"encoding/binary"
	"fmt"
)

// Message is a payload that knows its frame's type.
type Message interface {
	// Type is the type of the frame that carries the message.
	Type() Type
	// Append appends the encoded message to dst. It cannot fail: a message whose
	// fields are out of bounds gives a payload that Decode, or Seal before it,
	// refuses, never one of another meaning.
	Append(dst []byte) []byte
}

// Pack builds in buf, whose contents are dropped, the whole frame of a message,
// ready to be sent. The exchange is zero for messages outside of one. It fails as
// Seal does. It allocates only if buf is too small; a caller that holds the
// message as a Message has allocated it before.
func Pack[M Message](buf []byte, exchange uint64, m M) ([]byte, error) {
	frame := m.Append(Reserve(buf))
	if err := Seal(frame, Header{Type: m.Type(), Exchange: exchange}); err != nil {
		return nil, err
	}
	return frame, nil
}

// MaxRunName is the most bytes in a run's name.
const MaxRunName = 64

// CheckRun tells what is wrong with the name of a run: it has 1 to MaxRunName
// bytes of UTF-8, without control characters.
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
		if !cleanRune(r) {
			return false
		}
	}
	return true
}

// cleanRune refuses control characters, which could forge lines of a log or steer
// a terminal, and U+FFFD, which is also what ranging makes of invalid UTF-8.
func cleanRune(r rune) bool {
	return r >= ' ' && (r < 0x7f || r > 0x9f) && r != '\uFFFD'
}

// appendText appends a text after its length in one byte. A text longer than the
// byte can say gets the largest length, which is beyond the limit of every text.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, uint8(min(len(text), 255)))
	return append(dst, text...)
}

// cursor reads the fields of a payload one after the other. It keeps the first
// fault and reads zeros from then on, so that a decoder is a list of its fields;
// finish must be asked before any field is believed.
type cursor struct {
	what Type
	rest []byte
	err  error
}

// fault keeps the first fault.
func (c *cursor) fault(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("wire: %v: %s: %w", c.what, fmt.Sprintf(format, args...), ErrMessage)
	}
}

// take returns the next n bytes, or nil if there are fewer.
func (c *cursor) take(n int) []byte {
	if c.err == nil && len(c.rest) < n {
		c.fault("%d bytes missing", n-len(c.rest))
	}
	if c.err != nil {
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

func (c *cursor) uint8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) hash() (hash [32]byte) {
	copy(hash[:], c.take(len(hash)))
	return hash
}

// list returns the bytes that follow their count, or nil. They are the payload's,
// for the decoder to copy.
func (c *cursor) list(most int) []byte {
	n := int(c.uint8())
	if n > most {
		c.fault("list of %d bytes, at most %d", n, most)
	}
	return c.take(n)
}

// run reads the name of a run.
func (c *cursor) run() string {
	name := string(c.list(MaxRunName))
	if c.err == nil {
		if err := CheckRun(name); err != nil {
			c.err = fmt.Errorf("wire: %v: %w", c.what, err)
		}
	}
	return name
}

// finish reports the first fault, bytes left over included.
func (c *cursor) finish() error {
	if len(c.rest) > 0 {
		c.fault("%d bytes too many", len(c.rest))
	}
	return c.err
}
