package sumtalks

import (
	"io"
	"sync"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// hearing is the streams on which members speak: one of each, the last.
type hearing struct {
	mu      sync.Mutex
	ended   bool
	streams map[seam.PeerID]seam.Stream
}

// begin takes up a stream in the place of an older one. It reports false if it is too late.
func (h *hearing) begin(stream seam.Stream) bool {
	h.mu.Lock()
	old, late := h.streams[stream.Remote()], h.ended
	if !late {
		if h.streams == nil {
			h.streams = make(map[seam.PeerID]seam.Stream)
		}
		h.streams[stream.Remote()] = stream
	}
	h.mu.Unlock()
	if old != nil && !late {
		old.Reset() // not under the lock: it may wait for a transport
	}
	return !late
}

// leave forgets a stream. It reports whether it was the last of its member.
func (h *hearing) leave(stream seam.Stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.streams[stream.Remote()] == stream
	if last {
		delete(h.streams, stream.Remote())
	}
	return last
}

// end resets all streams, and lets no other begin.
func (h *hearing) end() {
	h.mu.Lock()
	h.ended = true
	var open []seam.Stream
	for _, stream := range h.streams {
		open = append(open, stream)
	}
	h.mu.Unlock()
	for _, stream := range open {
		stream.Reset()
	}
}

// Serve hears what a member says, until it ends its stream.
func (t *Talks) Serve(stream seam.Stream) {
	if !t.Here(stream.Remote()) || !t.hearing.begin(stream) {
		stream.Reset()
		return
	}
	var f framed.Stream
	f.Begin(stream, t.Stall+idleAfter)
	f.Bulk()
	err := t.hear(&f)
	t.Moved(0, f.Received)
	last := t.hearing.leave(stream)
	if err == io.EOF {
		stream.Close()
		return
	}
	stream.Reset()
	if reason, theirs := wire.ReasonFor(err); theirs {
		t.Malformed(stream.Remote(), reason, err)
	}
	if last {
		t.broken(stream.Remote(), err)
	}
}

// hear takes frame after frame, until there is none.
func (t *Talks) hear(f *framed.Stream) error {
	from := f.Remote()
	for {
		header, payload, err := f.Next()
		if err != nil {
			return err
		}
		var word wire.Sum
		var share wire.Share
		switch header.Type {
		case wire.TypeSum:
			err = word.Decode(payload)
		case wire.TypeShare:
			err = share.Decode(payload)
		default:
			err = wire.ErrType
		}
		if err != nil {
			return err
		}
		heard := t.do(func() {
			if header.Type == wire.TypeSum {
				t.machine.Hear(t.now(), from, word)
			} else {
				t.machine.Share(t.now(), from, share)
			}
		})
		if !heard {
			return io.EOF
		}
	}
}
