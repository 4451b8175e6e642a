package admit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// markTimeout bounds the sending and the awaiting of a mark.
const markTimeout = 5 * time.Second

// guarded is a transport whose streams are those of admitted peers only. On each
// stream but those of the hello protocol, which asks for more, the opener shows its
// mark first, if the run has a key. docs/WIRE.md has the bytes.
type guarded struct {
	seam.Transport
	guard *Guard
}

// Connect implements seam.Dialer.
func (t *guarded) Connect(ctx context.Context, address string) (seam.PeerID, error) {
	id, err := t.Transport.Connect(ctx, address)
	if err == nil {
		err = t.guard.AdmitID(id)
	}
	return id, err
}

// Open implements seam.Dialer.
func (t *guarded) Open(ctx context.Context, to seam.PeerID, protocol seam.Protocol, run string) (seam.Stream, error) {
	return t.open(to, protocol, func() (seam.Stream, error) { return t.Transport.Open(ctx, to, protocol, run) })
}

// Topic implements seam.Topics. A topic has no place for marks: who takes part there is
// known from elsewhere.
func (t *guarded) Topic(name string, takesPart func(seam.PeerID) bool, handler seam.TopicHandler) (seam.Topic, error) {
	return t.Transport.Topic(name, func(id seam.PeerID) bool {
		return t.guard.TakesPart(id) == nil && (takesPart == nil || takesPart(id))
	}, handler)
}

// OpenLane implements seam.Dialer.
func (t *guarded) OpenLane(ctx context.Context, to seam.PeerID, protocol seam.Protocol, run string, lane int) (seam.Stream, error) {
	return t.open(to, protocol, func() (seam.Stream, error) { return t.Transport.OpenLane(ctx, to, protocol, run, lane) })
}

// Handle implements seam.Listener. The hello protocol is served to everybody: it
// tells those who are not admitted why.
func (t *guarded) Handle(protocol seam.Protocol, run string, handler seam.Handler) (func(), error) {
	return t.Transport.Handle(protocol, run, func(raw seam.Stream) {
		stream := t.guard.streams.track(raw)
		if protocol != seam.ProtocolHello {
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
func (t *guarded) open(to seam.PeerID, protocol seam.Protocol, dial func() (seam.Stream, error)) (seam.Stream, error) {
	if err := t.guard.AdmitID(to); err != nil {
		return nil, err
	}
	raw, err := dial()
	if err != nil {
		return nil, err
	}
	stream := t.guard.streams.track(raw)
	err = t.guard.AdmitID(stream.Remote()) // it may have been taken off the list meanwhile
	if err == nil && t.guard.keyed() && protocol != seam.ProtocolHello {
		err = t.show(stream)
	}
	if err != nil {
		stream.Reset()
		return nil, err
	}
	return stream, nil
}

func (t *guarded) show(stream seam.Stream) error {
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

// examine finds out whether a stream comes from a peer that takes part.
func (t *guarded) examine(stream seam.Stream) error {
	if err := t.guard.AdmitID(stream.Remote()); err != nil || !t.guard.keyed() {
		return err
	}
	var mark [seam.MaxMark]byte
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

// SendPacket implements seam.Packets. The mark goes before each packet, if the run has a
// key: packets know of no others before them.
func (t *guarded) SendPacket(to seam.PeerID, run string, packet []byte) error {
	if err := t.guard.AdmitID(to); err != nil {
		return err
	}
	if len(packet) > seam.MaxPacket {
		return fmt.Errorf("a packet of %d bytes: %w", len(packet), seam.ErrNoPackets)
	}
	if t.guard.keyed() {
		packet = slices.Concat(t.guard.mark, packet)
	}
	return t.Transport.SendPacket(to, run, packet)
}

// HandlePackets implements seam.Packets. A packet of a peer that is not admitted is
// dropped without a word, as any packet may be.
func (t *guarded) HandlePackets(run string, handler func(seam.PeerID, []byte)) (stop func(), err error) {
	return t.Transport.HandlePackets(run, func(from seam.PeerID, packet []byte) {
		if packet, ok := t.unmark(from, packet); ok {
			handler(from, packet)
		}
	})
}

// unmark takes the mark off a packet, and tells whether its sender may take part.
func (t *guarded) unmark(from seam.PeerID, packet []byte) (rest []byte, ok bool) {
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

// trackedStream tells when it ends.
type trackedStream struct {
	seam.Stream
	in *openStreams
}

// Close implements seam.Stream.
func (s *trackedStream) Close() error {
	s.in.open.Delete(s)
	return s.Stream.Close()
}

// Reset implements seam.Stream.
func (s *trackedStream) Reset() {
	s.in.open.Delete(s)
	s.Stream.Reset()
}

func (o *openStreams) track(raw seam.Stream) *trackedStream {
	s := &trackedStream{Stream: raw, in: o}
	o.open.Store(s, nil)
	return s
}

// reset breaks off every stream with a peer.
func (o *openStreams) reset(id seam.PeerID) {
	for s := range o.open.Range {
		if s := s.(*trackedStream); s.Remote() == id {
			s.Reset()
		}
	}
}
