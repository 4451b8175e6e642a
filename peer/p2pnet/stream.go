package p2pnet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Why this package resets a stream, told to the other end. libp2p keeps 0x1001
// to 0x1009 for itself.
const (
	codeUnknownRun network.StreamErrorCode = 0x4d550001 + iota
	codeTooManyStreams
	codeBadPreamble
)

// stream implements transport.Stream.
type stream struct {
	raw      network.Stream
	remote   transport.PeerID
	protocol transport.Protocol
	run      string

	reads, writes deadline
	// answer is nil once the negotiation is over, and on the acceptor's side.
	// Only the reading goroutine touches it.
	answer *answer
}

var _ transport.Stream = (*stream)(nil)

func newStream(raw network.Stream, remote transport.PeerID, protocol transport.Protocol, run string, limit time.Duration) *stream {
	s := &stream{raw: raw, remote: remote, protocol: protocol, run: run}
	s.reads = deadline{limit: limit, set: raw.SetReadDeadline}
	s.writes = deadline{limit: limit, set: raw.SetWriteDeadline}
	return s
}

func (s *stream) Remote() transport.PeerID { return s.remote }

func (s *stream) Read(p []byte) (int, error) {
	if err := s.reads.before(); err != nil {
		return 0, err
	}
	if s.answer != nil {
		if err := s.answer.read(s.raw); err != nil {
			return 0, s.explain("reading from", unspoken(err))
		}
		s.answer = nil
	}
	n, err := s.raw.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	if n > 0 && isTimeout(err) {
		// The deadline passed while yamux told the sender to go on. The bytes are
		// good; the next read will say that time is up.
		return n, nil
	}
	return n, s.explain("reading from", err)
}

func (s *stream) Write(p []byte) (int, error) {
	if err := s.writes.before(); err != nil {
		return 0, err
	}
	n, err := s.raw.Write(p)
	if err != nil {
		err = s.explain("writing to", err)
	}
	return n, err
}

func (s *stream) CloseWrite() error                  { return s.raw.CloseWrite() }
func (s *stream) Close() error                       { return s.raw.Close() }
func (s *stream) SetReadDeadline(t time.Time) error  { return s.reads.assign(t) }
func (s *stream) SetWriteDeadline(t time.Time) error { return s.writes.assign(t) }

// Reset ignores errors: no caller could act on them.
func (s *stream) Reset() { _ = s.raw.Reset() }

// explain turns the reason of a reset into an error of package transport. It
// returns timeouts unchanged, for callers that look for a net.Error without
// unwrapping.
func (s *stream) explain(doing string, err error) error {
	if isTimeout(err) {
		return err
	}
	if reason := refused(err); reason != nil {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	return fmt.Errorf("p2pnet: %s peer %s (%s, run %q): %w", doing, s.remote, s.protocol, s.run, err)
}

// refused is the error of package transport, or of this one, that a remote reset
// stands for; nil if it stands for none.
func refused(err error) error {
	if gated(err) {
		return transport.ErrNotAdmitted
	}
	reset, ok := errors.AsType[*network.StreamError](err)
	if !ok || !reset.Remote {
		return nil
	}
	switch reset.ErrorCode {
	case codeUnknownRun:
		return transport.ErrUnknownRun
	case codeTooManyStreams, network.StreamResourceLimitExceeded, network.StreamRateLimited:
		return ErrTooManyStreams
	}
	return nil
}

// unspoken explains an error during the negotiation, in which libp2p resets a
// stream whose protocol it does not know. After the negotiation the same code
// only means that the other end closed the stream abruptly.
func unspoken(err error) error {
	reset, ok := errors.AsType[*network.StreamError](err)
	if ok && reset.Remote && reset.ErrorCode == network.StreamProtocolNegotiationFailed {
		return fmt.Errorf("%w: %w", transport.ErrUnknownProtocol, err)
	}
	return err
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
