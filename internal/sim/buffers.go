package sim

import (
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// spares is a pool of values that nobody uses at the moment. It keeps about as many as were
// in use at the same time lately.
type spares[T any] struct {
	idle  []T
	made  int // idle or in use
	least int // fewest idle ones since some were last dropped
	given int // calls of give since then
}

// lately is after how many returns of each value, on average, the pool drops those that
// were not needed meanwhile.
const lately = 16

// take takes an idle value. It reports false if there is none; the caller then makes one.
func (s *spares[T]) take() (one T, ok bool) {
	last := len(s.idle) - 1
	if last < 0 {
		s.made++
		return one, false
	}
	one, s.idle = s.idle[last], s.idle[:last]
	s.least = min(s.least, last)
	return one, true
}

// give returns a value that nobody refers to any more.
func (s *spares[T]) give(one T) {
	s.idle = append(s.idle, one)
	if s.given++; s.given <= lately*s.made {
		return
	}
	s.made -= s.least
	kept := copy(s.idle, s.idle[s.least:])
	clear(s.idle[kept:])
	s.idle, s.least, s.given = s.idle[:kept], kept, 0
}

// minSpare is the least size in bytes of a frame that the pool keeps: smaller buffers would
// have to grow again and again.
const minSpare = 2 << 10

// buffers are the pools that the conversations of all peers share.
type buffers struct {
	frames    spares[[]byte] // large frames that have arrived
	frame     []byte         // scratch for the frame that is sent
	readers   [2]spares[*wire.Reader]
	exchanges spares[*session.Exchange]
	transfers spares[*session.Transfer]
	served    spares[*session.Served]
}

// take returns an empty buffer for n bytes; its capacity may be less.
func (b *buffers) take(n int) []byte {
	if n < minSpare {
		return nil
	}
	buffer, _ := b.frames.take()
	return buffer[:0]
}

// give takes a buffer that nobody refers to any more.
func (b *buffers) give(buffer []byte) {
	if cap(buffer) >= minSpare {
		b.frames.give(buffer)
	}
}

// Kinds of readers: of handshakes, and of frames of any size.
const (
	small = iota
	large
)

// reader returns a reader of a kind that starts at the beginning of a frame.
func (b *buffers) reader(kind int, from *end) *wire.Reader {
	r, ok := b.readers[kind].take()
	if !ok {
		r = wire.NewReader(from, [...]int{wire.MaxHandshake, wire.MaxPayload}[kind])
	}
	r.Reset(from)
	return r
}

// takeOr takes an idle value, or makes one.
func takeOr[T any](s *spares[*T]) *T {
	if one, ok := s.take(); ok {
		return one
	}
	return new(T)
}
