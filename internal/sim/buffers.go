package sim

import (
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// spares are what nobody uses just now, for whoever needs one next: what was in use at once
// lately.
type spares[T any] struct {
	idle  []T
	made  int // idle or in use
	least int // that were idle at once since some were last let go of
	given int // back since
}

// lately is how often each has come back, on average, when those that have not been needed
// meanwhile are let go of.
const lately = 16

// take takes one that is idle. It reports false if there is none: then the caller makes one.
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

// give takes one back that nobody refers to any more.
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

// minSpare is the least size in bytes of a frame that is worth being kept; mixed with smaller
// ones they would be grown again and again.
const minSpare = 2 << 10

// buffers are what the conversations of all peers share.
type buffers struct {
	frames    spares[[]byte] // large ones that have arrived
	frame     []byte         // scratch for what is sent
	readers   [2]spares[*wire.Reader]
	exchanges spares[*session.Exchange]
	transfers spares[*session.Transfer]
	served    spares[*session.Served]
}

// take returns an empty buffer for n bytes, which may have to grow.
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

// reader returns one of a kind, from the beginning of a frame on.
func (b *buffers) reader(kind int, from *end) *wire.Reader {
	r, ok := b.readers[kind].take()
	if !ok {
		r = wire.NewReader(from, [...]int{wire.MaxHandshake, wire.MaxPayload}[kind])
	}
	r.Reset(from)
	return r
}

// takeOr takes one that is idle, or a new one.
func takeOr[T any](s *spares[*T]) *T {
	if one, ok := s.take(); ok {
		return one
	}
	return new(T)
}
