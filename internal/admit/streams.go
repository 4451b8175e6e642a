package admit

import (
	"sync"

	"github.com/seed-97356399/murmuration/peer/seam"
)

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
