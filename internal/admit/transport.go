package admit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// markTimeout bounds the sending and the awaiting of a mark.
const markTimeout = 5 * time.Second

// guarded is a transport with streams of admitted peers only. If the run has a key, the
// opener of a stream first sends its mark, except with the hello protocol, which demands
// more. docs/WIRE.md has the bytes.
type guarded struct {
	transport.Transport
	guard *Guard
}

// Connect implements transport.Dialer.
func (t *guarded) Connect(ctx context.Context, address string) (transport.PeerID, error) {
	id, err := t.Transport.Connect(ctx, address)
	if err == nil {
		err = t.guard.AdmitID(id)
	}
	return id, err
}

// Open implements transport.Dialer.
func (t *guarded) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	return t.open(to, protocol, func() (transport.Stream, error) { return t.Transport.Open(ctx, to, protocol, run) })
}

// Topic implements transport.Topics. Messages on a topic carry no marks: TakesPart decides
// from marks sent elsewhere.
func (t *guarded) Topic(name string, takesPart func(transport.PeerID) bool, handler transport.TopicHandler) (transport.Topic, error) {
	return t.Transport.Topic(name, func(id transport.PeerID) bool {
		return t.guard.TakesPart(id) == nil && (takesPart == nil || takesPart(id))
	}, handler)
}

// OpenLane implements transport.Dialer.
func (t *guarded) OpenLane(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	return t.open(to, protocol, func() (transport.Stream, error) { return t.Transport.OpenLane(ctx, to, protocol, run, lane) })
}

// Handle implements transport.Listener. The hello protocol is served to everybody: it tells
// peers why they are not admitted.
func (t *guarded) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	return t.Transport.Handle(protocol, run, func(raw transport.Stream) {
		stream := t.guard.streams.track(raw)
		if protocol != transport.ProtocolHello {
			if err := t.examine(stream); err != nil {
				t.guard.log.Warn("refused a stream of a peer that does not take part", zap.String("peer", string(stream.Remote())),
					zap.String("protocol", string(protocol)), zap.Error(err))
				stream.Reset()
				return
			}
		}
		handler(stream)
	})
}

// open opens a stream to a peer that may take part, and shows the mark on it.
func (t *guarded) open(to transport.PeerID, protocol transport.Protocol, dial func() (transport.Stream, error)) (transport.Stream, error) {
	if err := t.guard.AdmitID(to); err != nil {
		return nil, err
	}
	raw, err := dial()
	if err != nil {
		return nil, err
	}
	stream := t.guard.streams.track(raw)
	err = t.guard.AdmitID(stream.Remote()) // it may have been removed from the list meanwhile
	if err == nil && t.guard.keyed() && protocol != transport.ProtocolHello {
		err = t.show(stream)
	}
	if err != nil {
		stream.Reset()
		return nil, err
	}
	return stream, nil
}

func (t *guarded) show(stream transport.Stream) error {
	err := stream.SetWriteDeadline(time.Now().Add(markTimeout))
	if err == nil {
		_, err = stream.Write(t.guard.mark)
	}
	if err == nil {
		err = stream.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return fmt.Errorf("showing the mark of the run's key: %w", err)
	}
	return nil
}

// examine checks whether a stream comes from a peer that takes part.
func (t *guarded) examine(stream transport.Stream) error {
	if err := t.guard.AdmitID(stream.Remote()); err != nil || !t.guard.keyed() {
		return err
	}
	var mark [transport.MaxMark]byte
	err := stream.SetReadDeadline(time.Now().Add(markTimeout))
	if err == nil {
		_, err = io.ReadFull(stream, mark[:])
	}
	if err == nil {
		err = stream.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return fmt.Errorf("waiting for the mark of the run's key: %w", err)
	}
	return t.guard.Admit(stream.Remote(), mark[:])
}

// SendPacket implements transport.Packets. If the run has a key, each packet carries the
// mark, since packets are independent of each other.
func (t *guarded) SendPacket(to transport.PeerID, run string, packet []byte) error {
	if err := t.guard.AdmitID(to); err != nil {
		return err
	}
	if len(packet) > transport.MaxPacket {
		return fmt.Errorf("a packet of %d bytes: %w", len(packet), transport.ErrNoPackets)
	}
	if t.guard.keyed() {
		packet = slices.Concat(t.guard.mark, packet)
	}
	return t.Transport.SendPacket(to, run, packet)
}

// HandlePackets implements transport.Packets. A packet of a peer that is not admitted is
// dropped silently, as any packet may be.
func (t *guarded) HandlePackets(run string, handler func(transport.PeerID, []byte)) (stop func(), err error) {
	return t.Transport.HandlePackets(run, func(from transport.PeerID, packet []byte) {
		if packet, ok := t.unmark(from, packet); ok {
			handler(from, packet)
		}
	})
}

// unmark takes the mark off a packet, and tells whether its sender may take part.
func (t *guarded) unmark(from transport.PeerID, packet []byte) (rest []byte, ok bool) {
	if !t.guard.keyed() {
		return packet, t.guard.AdmitID(from) == nil
	}
	size := len(t.guard.mark)
	if len(packet) < size {
		return nil, false
	}
	return packet[size:], t.guard.Admit(from, packet[:size]) == nil
}

// openStreams are the streams of a run under way.
type openStreams struct{ open sync.Map } // of *trackedStream

// trackedStream removes itself from the open streams when it ends.
type trackedStream struct {
	transport.Stream
	in *openStreams
}

// Close implements transport.Stream.
func (s *trackedStream) Close() error {
	s.in.open.Delete(s)
	return s.Stream.Close()
}

// Reset implements transport.Stream.
func (s *trackedStream) Reset() {
	s.in.open.Delete(s)
	s.Stream.Reset()
}

func (o *openStreams) track(raw transport.Stream) *trackedStream {
	s := &trackedStream{Stream: raw, in: o}
	o.open.Store(s, nil)
	return s
}

// reset breaks off every stream with a peer.
func (o *openStreams) reset(id transport.PeerID) {
	for s := range o.open.Range {
		if s := s.(*trackedStream); s.Remote() == id {
			s.Reset()
		}
	}
}
