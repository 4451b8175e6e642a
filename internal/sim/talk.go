package sim

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// ErrStalled: a partner has said nothing for too long.
var ErrStalled = errors.New("the partner has stalled")

// talk is a conversation in frames at one end of a stream.
type talk struct {
	peer    *peer
	partner int
	end     *end
	part    part
	reader  *wire.Reader
	large   bool          // the reader is one for frames of any size
	frame   []byte        // scratch for what is sent
	heard   time.Duration // when something last came
	over    bool
}

// part is what a peer does in a talk.
type part interface {
	// hear takes the next frame. An error breaks the talk off.
	hear(h wire.Header, payload []byte) error
	// closed is told that the partner says nothing more, which ends the talk. An
	// error breaks it off instead.
	closed() error
	// broken is told why the talk broke off, before the stream is reset.
	broken(err error)
}

// newTalk starts a talk in which the frames of a handshake may come.
func (p *peer) newTalk(e *end) *talk {
	t := &talk{peer: p, partner: e.other.peer, end: e, heard: p.world.queue.Now()}
	t.reader = wire.NewReader(e, wire.MaxHandshake)
	e.ready = t.read
	p.talks = append(p.talks, t)
	p.watch()
	return t
}

// bulk lets frames of any size come from now on, into a buffer that was used
// before, if there is one.
func (t *talk) bulk() {
	w := t.peer.world
	if n := len(w.idle); n > 0 {
		t.reader = w.idle[n-1]
		w.idle = w.idle[:n-1]
		t.reader.Reset(t.end)
	} else {
		t.reader = wire.NewReader(t.end, wire.MaxPayload)
	}
	t.large = true
	t.enlarge()
}

// enlarge lets large frames be sent without making room for each.
func (t *talk) enlarge() { t.frame = t.peer.world.spare.take(minSpare) }

// read takes all frames that have arrived whole.
func (t *talk) read() {
	t.heard = t.peer.world.queue.Now()
	for !t.over && !t.end.dry() {
		h, payload, err := t.reader.Next()
		switch {
		case errors.Is(err, errDry):
			return
		case err == io.EOF:
			if err = t.part.closed(); err == nil {
				t.finish()
			}
		case err == nil:
			err = t.part.hear(h, payload)
		}
		if err != nil {
			t.breakOff(err)
		}
	}
}

// write sends a whole frame.
func (t *talk) write(frame []byte) error {
	t.peer.counts.Sent += int64(len(frame))
	return t.end.Write(frame)
}

// say sends a message.
func (t *talk) say(exchange uint64, m wire.Message) error {
	frame, err := wire.Pack(t.frame, exchange, m)
	if err == nil {
		t.frame = frame
		err = t.write(frame)
	}
	if err != nil {
		return fmt.Errorf("sending %v: %w", m.Type(), err)
	}
	return nil
}

// finish ends a talk in which all has been said.
func (t *talk) finish() {
	t.end.CloseWrite()
	t.leave()
}

// breakOff ends a talk with an error.
func (t *talk) breakOff(err error) {
	if t.over {
		return
	}
	t.leave()
	t.part.broken(err)
	t.end.Reset()
}

// leave takes the talk off its peer's list. What still comes is not read.
func (t *talk) leave() {
	t.over, t.end.deaf = true, true
	if t.large {
		t.peer.world.idle = append(t.peer.world.idle, t.reader)
	}
	t.peer.world.spare.give(t.frame)
	t.frame = nil
	for i := range t.peer.talks {
		if t.peer.talks[i] == t {
			t.peer.talks = append(t.peer.talks[:i], t.peer.talks[i+1:]...)
			return
		}
	}
}

// watch wakes the peer when the partner of one of its talks has stalled.
func (p *peer) watch() {
	if p.watching || len(p.talks) == 0 {
		return
	}
	first := p.talks[0].heard
	for _, t := range p.talks {
		first = min(first, t.heard)
	}
	p.watching = true
	p.world.queue.After(first+p.world.config.Stall-p.world.queue.Now(), func() {
		p.watching = false
		for _, t := range append([]*talk(nil), p.talks...) {
			if p.world.queue.Now()-t.heard >= p.world.config.Stall {
				t.breakOff(fmt.Errorf("waiting for peer %d: %w", t.partner, ErrStalled))
			}
		}
		p.watch()
	})
}
