package framed

import (
	"bufio"
	"io"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// together is how many bytes of small frames are sent at once, at most, and ahead how
	// many are read before they are asked for. More bring nothing more: TLS and the system
	// take 64 KiB at a time.
	together = 128 << 10
	ahead    = 64 << 10
	// gatherTime is for how long what is sent together may keep a link busy: whoever waits
	// for it is to see frames come one by one where they are slow in coming.
	gatherTime = 5 * time.Millisecond
	// large is the size from which a frame travels by itself: one more copy of it would
	// cost more than what it shares with others.
	large = 48 << 10
)

// gathering is what is sent and received at once where frames are many and small. Each by
// itself costs a record, a system call and a wake-up at either end, as much as 20 KB do.
// One goroutine may use what is sent while another uses what is read.
type gathering struct {
	out   []byte        // frames that wait to be sent
	in    *bufio.Reader // nil before the first begin
	since time.Time     // of begin
	ahead bool          // bytes are read ahead: on this stream frames may be many
	alone bool          // the last frame was large, and so may the next be
	// arrived counts the bytes since then, which whoever sends looks at.
	arrived atomic.Uint64
}

// begin reads from now on what has come, and not just what is asked for.
func (g *gathering) begin(from io.Reader) {
	if g.ahead {
		return // nothing that has been read may be lost
	}
	if g.in == nil {
		g.in = bufio.NewReaderSize(nil, ahead)
	}
	g.in.Reset(from)
	g.ahead, g.since = true, time.Now()
	g.arrived.Store(0)
}

// end forgets what waits.
func (g *gathering) end() { g.out, g.ahead, g.alone = g.out[:0], false, false }

// direct tells whether the next read need not go through the buffer.
func (g *gathering) direct() bool { return !g.ahead || g.alone && g.in.Buffered() == 0 }

// ready tells whether a whole frame is in the buffer.
func (g *gathering) ready() bool {
	if !g.ahead || g.in.Buffered() < wire.HeaderSize {
		return false
	}
	header, _ := g.in.Peek(wire.HeaderSize)
	return g.in.Buffered() >= wire.FrameSize(header)
}

// takes tells whether a frame is to wait with those that do, once these have been sent if
// there is no room beside them.
func (g *gathering) takes(frame []byte) (takes, room bool) {
	return g.ahead && len(frame) < large, len(g.out)+len(frame) <= g.most()
}

// put has a frame wait. It reports whether all that wait are to be sent now.
func (g *gathering) put(frame []byte) (full bool) {
	if g.out == nil {
		g.out = make([]byte, 0, together)
	}
	g.out = append(g.out, frame...)
	return len(g.out) >= g.most()
}

// most is how many bytes to send together: what has come on this stream so far shows how
// fast the link is, or the partner. Until something has, nothing waits.
func (g *gathering) most() int {
	received, elapsed := float64(g.arrived.Load()), time.Since(g.since)
	return int(min(received*float64(gatherTime)/float64(max(elapsed, 1)), together))
}
