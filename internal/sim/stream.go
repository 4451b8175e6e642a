package sim

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrReset: the stream has been broken off, by its other end or by the link.
var ErrReset = errors.New("stream reset")

// errDry: all bytes that have arrived are read; more may come.
var errDry = errors.New("nothing to read yet")

// Stream is a pair of ordered flows of bytes between two peers. Tests call its
// methods to cause faults; the peers hold its ends.
type Stream struct {
	line *line
	ends [2]end // the opener's, the other's
	dead bool   // nothing arrives any more
}

// end is what one peer holds of a stream.
type end struct {
	stream *Stream
	other  *end
	peer   int
	way    int    // direction of the line in which this end writes
	ready  func() // called when there is something to read

	inbox []byte
	read  int   // bytes of the inbox
	deaf  bool  // the reader has gone
	fault error // error of Read once the inbox is empty

	written  int64
	limit    int64 // bytes after which the fate comes, if there is a fate
	fate     fate
	held     []func() // arrivals that a stall keeps back
	tamper   Tamper
	last     time.Duration // when the last byte written arrives
	finished bool          // nothing more is written
}

// newStream opens a stream from one peer to another on a line.
func newStream(l *line, from, to int) *Stream {
	s := &Stream{line: l}
	s.ends[0] = end{stream: s, other: &s.ends[1], peer: from, way: wayOf(from, to)}
	s.ends[1] = end{stream: s, other: &s.ends[0], peer: to, way: wayOf(to, from)}
	l.streams = append(l.streams, s)
	return s
}

// wayOf numbers the two ways of a line.
func wayOf(from, to int) int {
	if from < to {
		return 0
	}
	return 1
}

// Write sends a frame, which the caller may use again at once.
func (e *end) Write(frame []byte) error {
	if e.fault == ErrReset || e.finished {
		return fmt.Errorf("write to peer %d: %w", e.other.peer, ErrReset)
	}
	if e.tamper == nil {
		e.send(frame)
		return nil
	}
	for _, piece := range e.tamper(append([]byte(nil), frame...)) {
		e.send(piece)
	}
	return nil
}

// send puts bytes on the line, up to the point where the direction meets its fate.
func (e *end) send(b []byte) {
	data := append(e.stream.line.spare.take(len(b)), b...)
	passed := len(data)
	if e.fate != carried {
		passed = int(max(0, min(int64(len(data)), e.limit-e.written)))
	}
	e.written += int64(len(data))
	if passed > 0 {
		e.carry(data[:passed])
	}
	switch {
	case e.fate == cutOff && e.written >= e.limit:
		e.inOrder(0, e.stream.sever)
	case e.fate == stalled && passed < len(data):
		rest := append([]byte(nil), data[passed:]...)
		e.held = append(e.held, func() { e.carry(rest) })
	}
}

// carry sends bytes, which the stream owns from now on, to the other end.
func (e *end) carry(data []byte) {
	e.inOrder(len(data), func() { e.other.deliver(data) })
}

// signal sends the end of the stream behind everything that was written.
func (e *end) signal(fault error) {
	if e.stuck() {
		e.held = append(e.held, func() { e.signal(fault) })
		return
	}
	e.inOrder(0, func() { e.other.fail(fault) })
}

// inOrder calls do at the other end after all that was written before, unless
// the stream is dead by then.
func (e *end) inOrder(bytes int, do func()) {
	e.last = max(e.last, e.stream.line.carry(e.way, bytes))
	e.stream.line.arrive(e.last, func() {
		if !e.stream.dead {
			do()
		}
	})
}

// deliver hands arrived bytes to the end's reader.
func (e *end) deliver(data []byte) {
	spare := e.stream.line.spare
	switch {
	case e.fault != nil || e.deaf:
		spare.give(data)
		return
	case len(e.inbox) == 0:
		e.inbox = data
	default:
		e.inbox = append(e.inbox, data...)
		spare.give(data)
	}
	e.ready()
}

// CloseWrite says that nothing more is written.
func (e *end) CloseWrite() {
	if e.finished {
		return
	}
	e.finished = true
	e.signal(io.EOF)
	e.tidy()
}

// Reset breaks the stream off: nothing more arrives here, and the other end gets
// ErrReset after the bytes that were sent to it.
func (e *end) Reset() {
	if e.fault == ErrReset {
		return
	}
	e.fault, e.finished = ErrReset, true
	e.signal(ErrReset)
	e.tidy()
}

// sever breaks the stream between its ends: bytes under way are lost, and both
// ends get ErrReset after the link's delay.
func (s *Stream) sever() {
	if s.dead {
		return
	}
	s.dead = true
	s.line.forget(s)
	s.line.queue.After(s.line.link.Delay, func() {
		s.ends[1].fail(ErrReset)
		s.ends[0].fail(ErrReset)
	})
}

// fail makes Read return an error once the inbox is empty.
func (e *end) fail(fault error) {
	if e.fault == ErrReset {
		return
	}
	e.fault = fault
	e.finished = e.finished || fault == ErrReset
	e.tidy()
	e.ready()
}

// tidy forgets the stream when both ends have finished.
func (e *end) tidy() {
	if e.finished && e.other.finished {
		e.stream.line.forget(e.stream)
	}
}

// dry tells whether there is nothing to read, not even a fault.
func (e *end) dry() bool { return e.read == len(e.inbox) && e.fault == nil }

// Read implements io.Reader. It gives errDry where a real stream would wait.
func (e *end) Read(b []byte) (int, error) {
	if e.read < len(e.inbox) {
		n := copy(b, e.inbox[e.read:])
		if e.read += n; e.read == len(e.inbox) {
			e.stream.line.spare.give(e.inbox)
			e.inbox, e.read = nil, 0
		}
		return n, nil
	}
	if e.fault != nil {
		return 0, e.fault
	}
	return 0, errDry
}

// fate is the fault of one direction of a stream.
type fate uint8

const (
	carried fate = iota
	cutOff       // the stream breaks
	stalled      // the rest is kept back silently
)

// Tamper alters what is written to one direction of a stream: it gets each frame,
// which it may keep and change, and returns the frames that arrive instead.
type Tamper func(frame []byte) [][]byte

// From is the peer that opened the stream, To the other.
func (s *Stream) From() int { return s.ends[0].peer }

// To is the peer to which the stream was opened.
func (s *Stream) To() int { return s.ends[1].peer }

// stuck tells whether a stall keeps back what this end writes now.
func (e *end) stuck() bool { return e.fate == stalled && e.written >= e.limit }
