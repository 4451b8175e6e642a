package peer_test

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

// tamperer is a transport that tampers with frames which leave on its streams of the
// exchange protocol, whichever side opened them: with one in every third stream.
type tamperer struct {
	transport.Transport
	t      *testing.T
	kind   tampering
	turn   int         // which of three streams: two tamperers on one stream could undo each other's work
	inTurn bool        // not at random places: at the first frame, then the second, ...
	busy   atomic.Bool // whether it tampers at present
	made   atomic.Int64

	mu      sync.Mutex
	random  *rand.Rand
	streams int
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

// Where in a stream a frame is tampered with.
const (
	// slicesAndMore is the number of frames that the active side of an exchange sends.
	slicesAndMore = tamperedSlices + 2
	// openers are the frames that come before slices: PROPOSE, STATUS, their answers.
	// A sixth of what is tampered with is among them, or they would hardly be met.
	openers = 3
)

func (m *tamperer) over(stream transport.Stream, protocol transport.Protocol) transport.Stream {
	if protocol != transport.ProtocolExchange {
		return stream
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams++
	return &tamperedStream{Stream: stream, by: m, place: m.place(), random: rand.New(rand.NewPCG(m.random.Uint64(), 0))}
}

// place is the number of frames that pass on the next stream before one is tampered
// with; none is if it is negative.
func (m *tamperer) place() int {
	switch {
	case m.streams%3 != m.turn:
		return -1
	case m.inTurn:
		return int(m.made.Load())
	case m.random.IntN(6) == 0:
		return m.random.IntN(openers)
	}
	return m.random.IntN(slicesAndMore)
}

// touches tells whether a frame counts as one that may be tampered with. In turn, only
// those do that every exchange has.
func (m *tamperer) touches(frame wire.Type) bool {
	switch frame {
	case wire.TypeCode, wire.TypeDiff:
		return true
	case wire.TypePropose, wire.TypeAccept, wire.TypeAck:
		return !m.kind.slices
	}
	return !m.kind.slices && !m.inTurn
}

// tamperedStream passes what is written on frame by frame. Like any stream it has one
// writer at a time.
type tamperedStream struct {
	transport.Stream
	by     *tamperer
	random *rand.Rand
	place  int // as tamperer.place gives it

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
	switch {
	case s.silent:
		return nil
	case s.kept != nil:
		late := s.kept
		s.kept = nil
		return [][]byte{frame, late}
	case s.place < 0 || !s.by.busy.Load() || !s.by.touches(header.Type):
		return [][]byte{frame}
	}
	s.place--
	if s.place >= 0 {
		return [][]byte{frame}
	}
	s.by.made.Add(1)
	return s.by.kind.alter(s, header, frame)
}

// CloseWrite lets a frame that was kept back go first.
func (s *tamperedStream) CloseWrite() error {
	if s.silent {
		return nil
	}
	if s.kept != nil {
		late := s.kept
		s.kept = nil
		if _, err := s.Stream.Write(late); err != nil {
			return err
		}
	}
	return s.Stream.CloseWrite()
}
