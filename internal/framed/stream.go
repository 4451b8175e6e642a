// Package framed sends and receives frames over a stream, with a bound on every wait. Each conversation of a peer
// uses it.
package framed

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Stream is a stream of frames, with its buffers. Begin starts the first stream and each further one, which reuses
// the buffers. One goroutine may send while another receives.
type Stream struct {
	transport.Stream
	// Stall bounds the wait for a frame, and the time to send one.
	Stall time.Duration
	// Until is the deadline of the whole conversation, and Late the error after it; zero if only Stall bounds it.
	Until time.Time
	Late  error
	// Soon bounds the wait for the first bytes of the next frame, once; 0 if only the frame's own bound applies.
	Soon time.Duration
	// Sealed allows frames of slices without a checksum, since nobody can alter the transport's bytes.
	Sealed bool
	// Frame is memory for frames to send.
	Frame []byte

	// Sent and Received are the bytes of this stream so far, and Longest is the longest wait
	// for a frame.
	Sent, Received uint64
	Longest        time.Duration
	// Sign is when the first bytes of the frame after Soon was set arrived; zero before.
	Sign time.Time

	whole       time.Time // the deadline of a frame that has not begun to arrive
	reader      *wire.Reader
	short, long *wire.Reader     // for requests and answers; for slices
	unread      io.LimitedReader // the rest that the partner sends
	gathering
}

// Converse calls talk on a stream, and then closes it. If talk fails or ctx ends, the stream is reset.
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

// Begin starts to use a stream.
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

// Bulk prepares for frames of any size. Before a partner has been accepted, they are not worth the memory.
func (s *Stream) Bulk() {
	if s.long == nil {
		s.long = wire.NewReader(s, wire.MaxPayload)
	}
	s.long.Reset(s)
	s.long.Sealed = s.Sealed
	s.reader = s.long
	s.begin(arrivals{s})
}

// Limit prepares for frames with payloads of at most payload bytes.
func (s *Stream) Limit(payload int) { s.reader = wire.NewReader(s, payload) }

// Read implements io.Reader for the readers of frames.
func (s *Stream) Read(b []byte) (int, error) {
	if s.direct() {
		return s.receive(b)
	}
	return s.in.Read(b)
}

// arrivals is a stream as its buffer's source.
type arrivals struct{ *Stream }

// Read implements io.Reader.
func (a arrivals) Read(b []byte) (int, error) { return a.receive(b) }

// receive reads from the stream and counts the bytes.
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

// Next reads a frame, all of which must arrive within the stall bound.
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

// Unread makes Next return the last frame again: see wire.Reader.
func (s *Stream) Unread() { s.reader.Unread() }

// Ready tells whether the whole next frame has arrived, so that Next does not wait.
func (s *Stream) Ready() bool { return s.ready() }

// Later sends a frame together with those that follow it, at the latest at Flush. It sends at once before Bulk, and a
// large frame after those that wait. The caller may reuse the frame.
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

// Flush sends the waiting frames. Call it before waiting for the partner.
func (s *Stream) Flush() error {
	if len(s.out) == 0 {
		return nil
	}
	err := s.Send(s.out)
	s.out = s.out[:0]
	return err
}

// CloseWrite closes the sending side, after the waiting frames.
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

// wait is the deadline for the next frame, given when the wait began.
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

// Seal completes and sends Frame, which wire.Reserve began.
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

// Say sends a message. It is not a method since methods cannot have type parameters: converting the message to an
// interface would allocate.
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

// Decoder is a message that can be decoded.
type Decoder interface {
	wire.Message
	Decode(payload []byte) error
}

// Receive reads a message of m's type. If the partner refuses instead, the error is a *wire.Refusal.
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

// maxUnread bounds the bytes that a partner may still send after this side's last frame: a full window of slices,
// with four bytes for each value.
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

// Drain waits, within the stall bound, for the partner to close a stream whose writing side is closed. It does not
// read the rest as frames, which may be the reason for the end. It reports whether the partner has closed in good
// order, without another frame, which could be a refusal: a partner does so only after it has handled everything.
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
