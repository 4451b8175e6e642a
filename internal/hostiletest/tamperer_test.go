package hostiletest_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// tamperer is a transport that tampers with a frame on one of its streams of the exchange protocol, whichever
// side opened it, each time that it is told to.
type tamperer struct {
	transport.Transport
	t    *testing.T
	kind tampering
	aim  atomic.Int64 // how many frames pass on a stream before one is tampered with; none is if it is negative

	mu     sync.Mutex
	random *rand.Rand
}

// Sealed: whoever can tamper is between the transport and the peer, so checksums stay.
func (m *tamperer) Sealed() bool { return false }

func (m *tamperer) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	stream, err := m.Transport.Open(ctx, to, protocol, run)
	if err != nil {
		return nil, err
	}
	return m.over(stream, protocol), nil
}

func (m *tamperer) OpenLane(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	stream, err := m.Transport.OpenLane(ctx, to, protocol, run, lane)
	if err != nil {
		return nil, err
	}
	return m.over(stream, protocol), nil
}

func (m *tamperer) Handle(protocol transport.Protocol, run string, handler transport.Handler) (stop func(), err error) {
	return m.Transport.Handle(protocol, run, func(stream transport.Stream) { handler(m.over(stream, protocol)) })
}

func (m *tamperer) over(stream transport.Stream, protocol transport.Protocol) transport.Stream {
	if protocol != transport.ProtocolExchange {
		return stream
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &tamperedStream{Stream: stream, by: m, random: rand.New(rand.NewPCG(m.random.Uint64(), 0))}
}

// tamperedStream passes what is written on frame by frame. Like any stream it has one writer at a time.
type tamperedStream struct {
	transport.Stream
	by     *tamperer
	random *rand.Rand
	passed int64 // frames that might have been tampered with

	unread []byte // what was written and is not yet a whole frame
	kept   []byte // a frame that is to go out behind the next
	silent bool   // nothing more goes out, and nobody is told
}

func (s *tamperedStream) Write(b []byte) (int, error) {
	s.unread = append(s.unread, b...)
	for {
		header, payload, err := wire.NewReader(bytes.NewReader(s.unread), wire.MaxPayload).Next()
		if err != nil {
			if len(s.unread) > 0 && !errors.Is(err, wire.ErrTruncated) {
				s.by.t.Errorf("a peer writes what is no frame: %v", err)
			}
			return len(b), nil
		}
		frame := slices.Clone(s.unread[:wire.HeaderSize+len(payload)])
		s.unread = s.unread[:copy(s.unread, s.unread[len(frame):])]
		for _, frame := range s.pass(header, frame) {
			if _, err := s.Stream.Write(frame); err != nil {
				return 0, err
			}
		}
	}
}

// pass returns what goes out in a frame's stead.
func (s *tamperedStream) pass(header wire.Header, frame []byte) [][]byte {
	isSlice := header.Type == wire.TypeCode || header.Type == wire.TypeDiff
	switch {
	case s.silent:
		return nil
	case s.kept != nil:
		late := s.kept
		s.kept = nil
		return [][]byte{frame, late}
	case s.by.kind.slices && !isSlice:
		return [][]byte{frame}
	}
	s.passed++
	if !s.by.aim.CompareAndSwap(s.passed-1, -1) {
		return [][]byte{frame}
	}
	return s.by.kind.alter(s, header, frame)
}

// CloseWrite lets a frame that was kept back go first.
func (s *tamperedStream) CloseWrite() error {
	if s.silent {
		return nil
	}
	if late := s.kept; late != nil {
		s.kept = nil
		if _, err := s.Stream.Write(late); err != nil {
			return err
		}
	}
	return s.Stream.CloseWrite()
}
