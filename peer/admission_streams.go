package peer

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
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
	guard *guard
}

var (
	_ seam.LaneDialer   = (*guarded)(nil)
	_ seam.Disconnector = (*guarded)(nil)
	_ seam.Broadcaster  = (*guarded)(nil)
	_ seam.Locator      = (*guarded)(nil)
	_ seam.Refuser      = (*guarded)(nil)
)

// Connect implements seam.Dialer.
func (t *guarded) Connect(ctx context.Context, address string) (seam.PeerID, error) {
	id, err := t.Transport.Connect(ctx, address)
	if err == nil {
		err = t.guard.admitID(id)
	}
	return id, err
}

// Open implements seam.Dialer.
func (t *guarded) Open(ctx context.Context, to seam.PeerID, protocol seam.Protocol, run string) (seam.Stream, error) {
	if err := t.guard.admitID(to); err != nil {
		return nil, err
	}
	stream, err := t.Transport.Open(ctx, to, protocol, run)
	if err != nil {
		return nil, err
	}
	return t.guard.opened(stream, protocol)
}

// Topic implements seam.Broadcaster, over a transport that does. A topic has no place for
// marks: who takes part there is known from elsewhere.
func (t *guarded) Topic(name string, takesPart func(seam.PeerID) bool, handler seam.TopicHandler) (seam.Topic, error) {
	broadcaster, ok := t.Transport.(seam.Broadcaster)
	if !ok {
		return nil, errors.New("this transport has no topics")
	}
	return broadcaster.Topic(name, func(id seam.PeerID) bool {
		return t.guard.takesPart(id) == nil && (takesPart == nil || takesPart(id))
	}, handler)
}

// OpenLane implements seam.LaneDialer, over a transport that does.
func (t *guarded) OpenLane(ctx context.Context, to seam.PeerID, protocol seam.Protocol, run string, lane int) (seam.Stream, error) {
	dialer, ok := t.Transport.(seam.LaneDialer)
	if !ok {
		return nil, errors.New("this transport has no lanes")
	}
	if err := t.guard.admitID(to); err != nil {
		return nil, err
	}
	stream, err := dialer.OpenLane(ctx, to, protocol, run, lane)
	if err != nil {
		return nil, err
	}
	return t.guard.opened(stream, protocol)
}

// Disconnect implements seam.Disconnector, over a transport that does.
func (t *guarded) Disconnect(id seam.PeerID) {
	if far, ok := t.Transport.(seam.Disconnector); ok {
		far.Disconnect(id)
	}
}

// Block implements seam.Locator, over a transport that does.
func (t *guarded) Block(id seam.PeerID) string {
	if locator, ok := t.Transport.(seam.Locator); ok {
		return locator.Block(id)
	}
	return ""
}

// Refused are the counts of the transport below.
func (t *guarded) Refused() map[string]uint64 { return refusals(t.Transport) }

// JoinAddresses are those of the transport below.
func (t *guarded) JoinAddresses() []string { return joinAddresses(t.Transport) }

// Handle implements seam.Listener. The hello protocol is served to everybody: it
// tells those who are not admitted why.
func (t *guarded) Handle(protocol seam.Protocol, run string, handler seam.Handler) (func(), error) {
	g := t.guard
	return t.Transport.Handle(protocol, run, func(raw seam.Stream) {
		stream := g.streams.track(raw)
		if protocol != seam.ProtocolHello {
			if err := g.examine(stream); err != nil {
				g.log.Warn("refused a stream of a peer that does not take part", zap.String("peer", string(stream.Remote())),
					zap.String("protocol", string(protocol)), zap.Error(err))
				stream.Reset()
				return
			}
		}
		handler(stream)
	})
}

// opened shows the mark on a stream that this peer has opened.
func (g *guard) opened(raw seam.Stream, protocol seam.Protocol) (seam.Stream, error) {
	stream := g.streams.track(raw)
	err := g.admitID(stream.Remote()) // it may have been taken off the list meanwhile
	if err == nil && g.keyed() && protocol != seam.ProtocolHello {
		err = g.show(stream)
	}
	if err != nil {
		stream.Reset()
		return nil, err
	}
	return stream, nil
}

func (g *guard) show(stream seam.Stream) error {
	err := stream.SetWriteDeadline(time.Now().Add(markTimeout))
	if err == nil {
		_, err = stream.Write(g.mark)
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
func (g *guard) examine(stream seam.Stream) error {
	if err := g.admitID(stream.Remote()); err != nil || !g.keyed() {
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
	return g.Admit(stream.Remote(), mark[:])
}

// marks tells whether a mark is the one of a peer.
func (g *guard) marks(id seam.PeerID, mark []byte) bool {
	return hmac.Equal(g.markOf(id), mark)
}

// openStreams are the streams of a run under way, by the peer at the other end.
type openStreams struct {
	mu   sync.Mutex
	open map[seam.PeerID]map[*trackedStream]struct{}
}

// trackedStream tells when it ends.
type trackedStream struct {
	seam.Stream
	in *openStreams
}

// Close implements seam.Stream.
func (s *trackedStream) Close() error {
	s.in.forget(s)
	return s.Stream.Close()
}

// Reset implements seam.Stream.
func (s *trackedStream) Reset() {
	s.in.forget(s)
	s.Stream.Reset()
}

func (o *openStreams) track(raw seam.Stream) *trackedStream {
	s := &trackedStream{Stream: raw, in: o}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[seam.PeerID]map[*trackedStream]struct{})
	}
	if o.open[raw.Remote()] == nil {
		o.open[raw.Remote()] = make(map[*trackedStream]struct{})
	}
	o.open[raw.Remote()][s] = struct{}{}
	return s
}

func (o *openStreams) forget(s *trackedStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open[s.Remote()], s)
	if len(o.open[s.Remote()]) == 0 {
		delete(o.open, s.Remote())
	}
}

// reset breaks off every stream with a peer.
func (o *openStreams) reset(id seam.PeerID) {
	o.mu.Lock()
	streams := make([]*trackedStream, 0, len(o.open[id]))
	for s := range o.open[id] {
		streams = append(streams, s)
	}
	o.mu.Unlock()
	for _, s := range streams {
		s.Reset()
	}
}
