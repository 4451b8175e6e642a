package framed

import (
	"bufio"
	"io"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// together bounds the bytes of small frames that are sent at once, and the bytes that are read ahead. More would
	// not help: TLS and the system take 64 KiB at a time.
	together = 128 << 10
	ahead    = 64 << 10
	// gatherTime bounds how long frames that are sent together keep a link busy: on a slow link the receiver should
	// see frames arrive one by one.
	gatherTime = 5 * time.Millisecond
	// large is the size from which a frame is sent separately: to copy it once more would cost more than sending it
	// with others saves.
	large = 48 << 10
)

// gathering sends and receives many small frames at once. Separately, each of them costs a record, a system call and
// a wake-up at either end, as much as 20 KB do. One goroutine may use the sending fields while another uses the
// receiving ones.
type gathering struct {
	out   []byte        // frames that wait to be sent
	in    *bufio.Reader // nil before the first begin
	since time.Time     // of begin
	ahead bool          // read ahead, since this stream may have many frames
	alone bool          // the last frame was large, and the next may be, too
	// arrived counts the bytes received since begin; the sender reads it.
	arrived atomic.Uint64
}

// begin starts reading ahead.
func (g *gathering) begin(from io.Reader) {
	if g.ahead {
		return // the buffer may hold bytes
	}
	if g.in == nil {
		g.in = bufio.NewReaderSize(nil, ahead)
	}
	g.in.Reset(from)
	g.ahead, g.since = true, time.Now()
	g.arrived.Store(0)
}

// end drops the waiting frames.
func (g *gathering) end() { g.out, g.ahead, g.alone = g.out[:0], false, false }

// direct tells whether the next read may bypass the buffer.
func (g *gathering) direct() bool { return !g.ahead || g.alone && g.in.Buffered() == 0 }

// ready tells whether a whole frame is in the buffer.
func (g *gathering) ready() bool {
	if !g.ahead || g.in.Buffered() < wire.HeaderSize {
		return false
	}
	header, _ := g.in.Peek(wire.HeaderSize)
	return g.in.Buffered() >= wire.FrameSize(header)
}

// takes tells whether a frame is to wait with others, and whether there is room for it before these are sent.
func (g *gathering) takes(frame []byte) (takes, room bool) {
	return g.ahead && len(frame) < large, len(g.out)+len(frame) <= g.most()
}

// put makes a frame wait. It reports whether all waiting frames are to be sent now.
func (g *gathering) put(frame []byte) (full bool) {
	if g.out == nil {
		g.out = make([]byte, 0, together)
	}
	g.out = append(g.out, frame...)
	return len(g.out) >= g.most()
}

// most is how many bytes to send together. The bytes received so far on this stream show how fast the link, or the
// partner, is. Before any have been received, no frame waits.
func (g *gathering) most() int {
	received, elapsed := float64(g.arrived.Load()), time.Since(g.since)
	return int(min(received*float64(gatherTime)/float64(max(elapsed, 1)), together))
}
