// Package framed speaks in frames over a stream, with a bound on every wait: what each
// conversation of a peer stands on, whatever it is about.
package framed

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Stream is a stream in frames, with the buffers that it needs. Streams are reused:
// Begin begins the next, and the first. One goroutine may send while another receives.
type Stream struct {
	transport.Stream
	// Stall bounds the wait for a frame, and the time to send one.
	Stall time.Duration
	// Until is when all has to be over, and Late the error of what is not; zero if nothing
	// but Stall bounds it.
	Until time.Time
	Late  error
	// Soon bounds the wait for the first bytes of the next frame; 0 if nothing but the
	// frame's own bound does. It counts once.
	Soon time.Duration
	// Sealed: frames of slices may come without a checksum, since nobody can alter what the
	// transport carries.
	Sealed bool
	// Frame is scratch for what is sent.
	Frame []byte

	// Sent and Received are the bytes of this stream so far, and Longest is the longest wait
	// for a frame.
	Sent, Received uint64
	Longest        time.Duration
	// Sign is when the first bytes of the frame came for which Soon was set; zero if they
	// have not.
	Sign time.Time

	whole       time.Time // the deadline of a frame of which the first bytes are waited for
	reader      *wire.Reader
	short, long *wire.Reader     // for requests and answers; for slices
	unread      io.LimitedReader // what the partner still sends
	gathering
}

// Converse speaks on a stream, and closes it when talk has returned. Talk may fail, and
// ctx end: the stream is reset then.
func (s *Stream) Converse(ctx context.Context, stream transport.Stream, stall time.Duration, talk func(*Stream) error) error {
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	s.Begin(stream, stall)
	if err := talk(s); err != nil {
		stream.Reset()
		return err
	}
	stream.Close()
	return nil
}

// Begin starts to speak on a stream.
func (s *Stream) Begin(stream transport.Stream, stall time.Duration) {
	s.Stream, s.Stall, s.Until, s.Late, s.Soon = stream, stall, time.Time{}, nil, 0
	s.whole, s.Sign = time.Time{}, time.Time{}
	s.Sent, s.Received, s.Longest = 0, 0, 0
	s.end()
	if s.short == nil {
		s.short = wire.NewReader(s, wire.MaxHandshake)
	}
	s.short.Reset(s)
	s.reader = s.short
}

// Bulk makes a stream ready for frames of any size. Until a partner has been accepted,
// it is not worth their memory.
func (s *Stream) Bulk() {
	if s.long == nil {
		s.long = wire.NewReader(s, wire.MaxPayload)
	}
	s.long.Reset(s)
	s.long.Sealed = s.Sealed
	s.reader = s.long
	s.begin(arrivals{s})
}

// Limit makes a stream ready for frames with payloads of so many bytes.
func (s *Stream) Limit(payload int) { s.reader = wire.NewReader(s, payload) }

// Read implements io.Reader for the readers of frames.
func (s *Stream) Read(b []byte) (int, error) {
	if s.direct() {
		return s.receive(b)
	}
	return s.in.Read(b)
}

// arrivals is a stream as its buffer reads it.
type arrivals struct{ *Stream }

// Read implements io.Reader.
func (a arrivals) Read(b []byte) (int, error) { return a.receive(b) }

// receive reads from the stream and counts.
func (s *Stream) receive(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	s.Received += uint64(n)
	s.arrived.Add(uint64(n))
	if n > 0 && !s.whole.IsZero() {
		s.Sign = time.Now()
		if err == nil {
			err = s.SetReadDeadline(s.whole)
		}
		s.whole = time.Time{}
	}
	return n, err
}

// Next reads a frame, which must have come as a whole within the stall bound.
func (s *Stream) Next() (wire.Header, []byte, error) {
	began := time.Now()
	if s.ready() {
		if s.Soon > 0 {
			s.Soon, s.Sign = 0, began
		}
		return s.take()
	}
	deadline, err := s.wait(began)
	if soon := began.Add(s.Soon); s.Soon > 0 && soon.Before(deadline) {
		deadline, s.whole = soon, deadline
	}
	if err == nil {
		err = s.SetReadDeadline(deadline)
	}
	if err != nil {
		return wire.Header{}, nil, err
	}
	header, payload, err := s.take()
	s.Soon, s.whole = 0, time.Time{}
	s.Longest = max(s.Longest, time.Since(began))
	return header, payload, err
}

// take reads a frame.
func (s *Stream) take() (wire.Header, []byte, error) {
	header, payload, err := s.reader.Next()
	s.alone = len(payload) >= large
	return header, payload, err
}

// Unread has Next return the last frame once more: see wire.Reader.
func (s *Stream) Unread() { s.reader.Unread() }

// Ready tells whether the next frame has come as a whole, so that Next will not wait.
func (s *Stream) Ready() bool { return s.ready() }

// Later sends a frame together with those that follow it, at the latest at Flush. Before
// Bulk each goes at once, and later large ones do, after those that wait. The frame is the
// caller's again.
func (s *Stream) Later(frame []byte) error {
	takes, room := s.takes(frame)
	if !takes || !room {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	if !takes {
		return s.Send(frame)
	}
	if s.put(frame) {
		return s.Flush()
	}
	return nil
}

// Flush sends the frames that wait. Whoever is about to wait for the partner has to.
func (s *Stream) Flush() error {
	if len(s.out) == 0 {
		return nil
	}
	err := s.Send(s.out)
	s.out = s.out[:0]
	return err
}

// CloseWrite ends what is sent, after the frames that wait.
func (s *Stream) CloseWrite() error {
	if err := s.Flush(); err != nil {
		return err
	}
	return s.Stream.CloseWrite()
}

// Send sends whole frames.
func (s *Stream) Send(frame []byte) error {
	deadline, err := s.wait(time.Now())
	if err == nil {
		err = s.SetWriteDeadline(deadline)
	}
	if err != nil {
		return err
	}
	n, err := s.Write(frame)
	s.Sent += uint64(n)
	return err
}

// wait is the deadline for the next frame, whose wait begins at a moment.
func (s *Stream) wait(began time.Time) (deadline time.Time, err error) {
	deadline = began.Add(s.Stall)
	switch {
	case s.Until.IsZero() || deadline.Before(s.Until):
		return deadline, nil
	case began.Before(s.Until):
		return s.Until, nil
	}
	return deadline, s.Late
}

// Seal sends what has been made in Frame, which wire.Reserve began.
func (s *Stream) Seal(h wire.Header) error {
	err := wire.Seal(s.Frame, h)
	if err == nil {
		err = s.Send(s.Frame)
	}
	if err != nil {
		return fmt.Errorf("sending %v: %w", h.Type, err)
	}
	return nil
}

// Say sends a message. It is no method because those have no type parameters: a
// message passed as an interface would be allocated.
func Say[M wire.Message](s *Stream, exchange uint64, m M) error {
	frame, err := wire.Pack(s.Frame, exchange, m)
	if err == nil {
		s.Frame = frame
		err = s.Send(frame)
	}
	if err != nil {
		return fmt.Errorf("sending %v: %w", m.Type(), err)
	}
	return nil
}

// Decoder is a message that can be read.
type Decoder interface {
	wire.Message
	Decode(payload []byte) error
}

// Receive reads a message of the type that m has, or the refusal that came in its stead, as
// an error of type *wire.Refusal.
func (s *Stream) Receive(m Decoder) (wire.Header, error) {
	header, payload, err := s.Await(m.Type())
	if err != nil {
		return header, err
	}
	switch header.Type {
	case m.Type():
		return header, m.Decode(payload)
	case wire.TypeRefuse:
		return header, wire.Refused(payload)
	}
	return header, fmt.Errorf("waiting for %v: got %v: %w", m.Type(), header.Type, wire.ErrType)
}

// Await reads a frame where one of a type is due; an end of the stream is an error.
func (s *Stream) Await(due wire.Type) (wire.Header, []byte, error) {
	header, payload, err := s.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return header, nil, fmt.Errorf("waiting for %v: %w", due, err)
	}
	return header, payload, nil
}

// Refuse declines what the partner asked for and waits, within the stall bound, until it
// has read that: closing at once could overtake the frame.
func (s *Stream) Refuse(exchange uint64, reason wire.Reason, detail string) {
	if Say(s, exchange, wire.Refuse{Reason: reason, Detail: detail}) != nil {
		s.Reset()
		return
	}
	s.Finish()
}

// maxUnread bounds what a partner may still send after our last word: a full window of
// slices, with four bytes for each value.
const maxUnread = wire.MaxInDoubt * 4 * wire.MaxSliceLen

// Finish ends a conversation in which this side has sent the last frame: it closes the
// writing side and waits for the partner to close, so that the last frame is not cut off.
func (s *Stream) Finish() {
	if s.CloseWrite() != nil {
		s.Reset()
		return
	}
	s.Drain()
}

// Drain waits, within the stall bound, for the partner to close a stream whose writing
// side is closed. What the partner has still sent is not read as frames: it may be what
// made us end. It reports whether the partner has closed in good order, which it does
// only once it has dealt with all that it was sent, and without a word: it could be a
// refusal of what was sent last.
func (s *Stream) Drain() (inOrder bool) {
	if s.SetReadDeadline(time.Now().Add(s.Stall)) != nil {
		s.Reset()
		return false
	}
	s.unread = io.LimitedReader{R: s, N: maxUnread}
	said, err := io.Copy(io.Discard, &s.unread)
	if err != nil || s.unread.N == 0 {
		s.Reset()
		return false
	}
	s.Close()
	return said == 0
}
