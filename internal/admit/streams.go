package admit

import (
	"maps"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/peer/seam"
)

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
	streams := slices.Collect(maps.Keys(o.open[id]))
	o.mu.Unlock()
	for _, s := range streams {
		s.Reset()
	}
}
