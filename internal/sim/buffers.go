package sim

import (
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// Bounds of the buffers kept for reuse.
const (
	// sparePerPeer is their number for each peer of the world: about as many as are
	// under way at once.
	sparePerPeer = 4
	// minSpare is the least size in bytes that is worth it; mixed with smaller ones
	// they would be grown again and again.
	minSpare = 2 << 10
)

// buffers are what no peer uses just now, for whichever needs it next: as much as all have
// used at once.
type buffers struct {
	spare [][]byte // of large frames that have arrived
	most  int
	frame []byte // scratch for what is sent

	// readers are between two frames: the first are for handshakes, the others for all.
	readers   [2][]*wire.Reader
	exchanges []*session.Exchange
	transfers []*session.Transfer
	served    []*session.Served
}

// take returns an empty buffer for n bytes, which may have to grow.
func (b *buffers) take(n int) []byte {
	last := len(b.spare) - 1
	if n < minSpare || last < 0 {
		return nil
	}
	buffer := b.spare[last]
	b.spare = b.spare[:last]
	return buffer[:0]
}

// give takes a buffer that nobody refers to any more.
func (b *buffers) give(buffer []byte) {
	if cap(buffer) >= minSpare && len(b.spare) < b.most {
		b.spare = append(b.spare, buffer)
	}
}

// readers of handshakes, and of frames of any size.
const (
	small = iota
	large
)

// reader returns one of a kind that is between two frames of nobody.
func (b *buffers) reader(kind int) *wire.Reader {
	if kind == small {
		return take(&b.readers[small], func() *wire.Reader { return wire.NewReader(nil, wire.MaxHandshake) })
	}
	return take(&b.readers[large], func() *wire.Reader { return wire.NewReader(nil, wire.MaxPayload) })
}

// take takes one that is not in use, or makes one.
func take[T any](idle *[]*T, build func() *T) (one *T) {
	if n := len(*idle); n > 0 {
		one, *idle = (*idle)[n-1], (*idle)[:n-1]
		return one
	}
	return build()
}
