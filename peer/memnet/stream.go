package memnet

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// ErrReset is the error of reads and writes on a stream that either end, a
// crash or the closing of a transport has aborted.
var ErrReset = errors.New("memnet: stream reset")

var errStreamClosed = errors.New("memnet: stream closed by this end")

// timeoutError satisfies net.Error, and deliberately is not
// os.ErrDeadlineExceeded: see transport.Stream.
type timeoutError struct{}

func (timeoutError) Error() string   { return "memnet: deadline exceeded" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// stream is a pair of ends; end i belongs to the peer that sends on flow i.
type stream struct {
	lane int
	ends [2]end
}

// end implements transport.Stream. The cable's lock guards all fields that change.
type end struct {
	stream *stream
	cable  *cable
	side   int
	local  *Transport
	remote transport.PeerID

	in               inbox // what the other end wrote
	reading, writing waiter
	readBy, writeBy  time.Duration // deadlines; never if unset
	wroteEnd         bool          // CloseWrite or Close was called
	closed           bool          // Close was called
	reset            bool          // Reset was called here
	resetAt          time.Duration // when the other end's reset arrives
}

func newStream(c *cable, from, to *Transport, lane int) (local, remote *end) {
	s := &stream{lane: lane}
	side := c.side(from.Self())
	for i := range s.ends {
		s.ends[i] = end{
			stream: s, cable: c, side: i,
			in:      inbox{window: c.net.window},
			reading: newWaiter(c.net.epoch), writing: newWaiter(c.net.epoch),
			readBy: never, writeBy: never, resetAt: never,
		}
	}
	local, remote = &s.ends[side], &s.ends[1-side]
	local.local, local.remote = from, to.Self()
	remote.local, remote.remote = to, from.Self()
	c.mu.Lock()
	c.streams = append(c.streams, s)
	c.mu.Unlock()
	return local, remote
}

func (e *end) other() *end { return &e.stream.ends[1-e.side] }

func (e *end) Remote() transport.PeerID { return e.remote }

// Read implements transport.Stream. Only one goroutine may read at a time.
func (e *end) Read(p []byte) (int, error) {
	for {
		n, until, err := e.tryRead(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		e.reading.wait(until)
	}
}

func (e *end) tryRead(p []byte) (n int, until time.Duration, err error) {
	c := e.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.net.now()
	if err := e.fault(now, e.readBy, e.closed); err != nil {
		return 0, 0, err
	}
	if n = e.in.take(p, now); n > 0 {
		e.other().writing.signal()
		return n, 0, nil
	}
	if e.in.atEnd(now) {
		if e.in.torn {
			return 0, 0, ErrReset
		}
		return 0, 0, io.EOF
	}
	return 0, min(e.in.next(), e.readBy, e.resetAt), nil
}

// Write implements transport.Stream: it returns once all of p is within the window.
// Only one goroutine may write at a time.
func (e *end) Write(p []byte) (int, error) {
	sent := 0
	for {
		n, until, err := e.tryWrite(p[sent:])
		if sent += n; err != nil || sent == len(p) {
			return sent, err
		}
		e.writing.wait(until)
	}
}

func (e *end) tryWrite(p []byte) (n int, until time.Duration, err error) {
	c := e.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.net.now()
	if err := e.fault(now, e.writeBy, e.wroteEnd); err != nil {
		return 0, 0, err
	}
	if e.brokenAt() <= now {
		return 0, 0, ErrReset
	}
	other := e.other()
	if other.closed || other.reset {
		n = len(p) // nobody will read it
	}
	for n < len(p) && other.in.space() > 0 && e.resetAt > now {
		size := min(len(p)-n, other.in.space(), SegmentSize, c.faults[e.side].room())
		at, ok := e.send(now, size)
		if !ok {
			e.abort(now)
			return n, 0, ErrReset
		}
		other.in.put(p[n:n+size], at, now)
		n += size
		c.sent(e.side, size, now)
	}
	if n > 0 {
		other.reading.signal()
	}
	return n, min(e.writeBy, e.resetAt, e.brokenAt()), nil
}

// send gives bytes that this end sends their arrival time. It reports false if
// they were lost too often.
func (e *end) send(now time.Duration, size int) (time.Duration, bool) {
	if e.held() {
		return never, true
	}
	return e.cable.path(e.stream.lane)[e.side].send(e.cable.link, now, size)
}

// brokenAt is when this end learns that the other has broken the stream behind
// its last byte. What arrives before it can still be read.
func (e *end) brokenAt() time.Duration {
	if !e.in.torn {
		return never
	}
	return e.in.endAt
}

func (e *end) fault(now, deadline time.Duration, closed bool) error {
	switch {
	case e.reset || e.resetAt <= now:
		return ErrReset
	case closed:
		return errStreamClosed
	case deadline <= now:
		return timeoutError{}
	}
	return nil
}

func (e *end) CloseWrite() error {
	c := e.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.net.now()
	if e.reset || e.resetAt <= now {
		return ErrReset
	}
	e.endWriting(now)
	return nil
}

func (e *end) endWriting(now time.Duration) {
	if e.wroteEnd {
		return
	}
	e.wroteEnd = true
	in := &e.other().in
	in.ended = true
	in.endAt, _ = e.send(now, 0)
	e.other().reading.signal()
	e.writing.signal()
}

// Close implements transport.Stream. What the other end still writes is discarded
// without its noticing.
func (e *end) Close() error {
	e.cable.mu.Lock()
	if !e.closed && !e.reset {
		e.endWriting(e.cable.net.now())
		e.closed = true
		e.in.drop()
		e.wake()
		e.retire()
	}
	e.cable.mu.Unlock()
	e.local.forget(e)
	return nil
}

// Reset implements transport.Stream. The other end hears of it after the link's
// delay, ahead of data that is still queued.
func (e *end) Reset() {
	e.cable.mu.Lock()
	if !e.reset {
		now := e.cable.net.now()
		e.reset = true
		e.in.drop()
		if other := e.other(); e.resetAt > now {
			other.resetAt = min(other.resetAt, e.resetArrival(now))
		}
		e.wake()
		e.retire()
	}
	e.cable.mu.Unlock()
	e.local.forget(e)
}

func (e *end) resetArrival(now time.Duration) time.Duration {
	if e.held() {
		return never
	}
	return now + max(e.cable.link.Delay, 0)
}

// abort breaks the stream at both ends; their owners still have to close them.
func (e *end) abort(now time.Duration) {
	e.resetAt, e.other().resetAt = now, now
	e.wake()
}

// wake makes everybody who waits on the stream look again.
func (e *end) wake() {
	for i := range e.stream.ends {
		e.stream.ends[i].reading.signal()
		e.stream.ends[i].writing.signal()
	}
}

// retire takes the stream off the cable once neither end is open.
func (e *end) retire() {
	for i := range e.stream.ends {
		if end := &e.stream.ends[i]; !end.closed && !end.reset {
			return
		}
	}
	e.cable.streams = slices.DeleteFunc(e.cable.streams, func(s *stream) bool { return s == e.stream })
}

func (e *end) SetReadDeadline(t time.Time) error { return e.setDeadline(&e.readBy, &e.reading, t) }

func (e *end) SetWriteDeadline(t time.Time) error { return e.setDeadline(&e.writeBy, &e.writing, t) }

func (e *end) setDeadline(deadline *time.Duration, waits *waiter, t time.Time) error {
	e.cable.mu.Lock()
	defer e.cable.mu.Unlock()
	*deadline = never
	if !t.IsZero() {
		*deadline = t.Sub(e.cable.net.epoch)
	}
	waits.signal()
	return nil
}

func (s *stream) hold(now time.Duration) {
	for i := range s.ends {
		e := &s.ends[i]
		e.in.hold(now)
		if e.resetAt > now {
			e.resetAt = never
		}
	}
}

// release sends what was held back of this end's, unless something still holds it.
func (e *end) release(now time.Duration) {
	if e.held() {
		return
	}
	other := e.other()
	if e.reset && other.resetAt == never {
		other.resetAt = e.resetArrival(now)
	}
	sent := other.in.release(func(size int) (time.Duration, bool) { return e.send(now, size) })
	if !sent {
		e.abort(now)
	}
	e.wake()
}

// tear breaks the stream behind what this end has sent; the owners of both ends
// still have to close them.
func (e *end) tear(now time.Duration) {
	in := &e.other().in
	if !in.ended {
		in.ended = true
		in.endAt, _ = e.send(now, 0)
	}
	in.torn = true
	e.wroteEnd = true
	e.resetAt = min(e.resetAt, now)
	e.wake()
}

// held tells whether what this end sends is held back.
func (e *end) held() bool {
	return e.cable.cut || e.cable.faults[e.side].stalled
}
