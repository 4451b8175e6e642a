package sim

import (
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// Errors of conversations, to be tested with errors.Is.
var (
	// ErrUnreachable: the link to the partner is cut.
	ErrUnreachable = errors.New("the partner cannot be reached")
	// ErrStalled: a partner has said nothing for too long.
	ErrStalled error = timeout{}
	// errHalted: the machine's algorithm cannot go on.
	errHalted = errors.New("the algorithm cannot go on")
)

// timeout is a net.Error whose Timeout is true, as a real stream returns it.
type timeout struct{}

func (timeout) Error() string { return "the partner has stalled" }
func (timeout) Timeout() bool { return true }

// conversation drives a conversation at one end of a stream.
type conversation struct {
	peer    *peer
	partner int
	end     *end
	session session.Conversation
	name    key          // of the exchange, if the machine knows of it
	reader  *wire.Reader // set within a frame, nil between two frames
	frames  int          // the kind of reader for the next frames
	over    bool

	paced    bool          // all frames but the first are handed to the line only when the line is free
	begun    bool          // the first frame was sent
	pausing  bool          // waits until the line is free
	news     bool          // something has happened since the last Do
	received time.Duration // when bytes last arrived
	longest  time.Duration // longest time without a byte
	slices   time.Duration // when the wait for the first slice began; 0 without such a wait
	opening  time.Duration // how long the first slice took
}

// read takes all frames that have arrived whole.
func (t *conversation) read() {
	now, spare := t.peer.now(), &t.peer.world.spare
	t.longest = max(t.longest, now-t.received)
	if t.slices > 0 {
		t.opening, t.slices = now-t.slices, 0
	}
	t.received = now
	for !t.over && !t.end.dry() {
		if t.reader == nil {
			t.reader = spare.reader(t.frames, t.end)
		}
		h, payload, err := t.reader.Next()
		switch {
		case errors.Is(err, errDry):
			return
		case err == io.EOF:
			t.session.Close()
		case err == nil:
			t.session.Receive(now, h, payload)
		default:
			t.session.Fail(err)
		}
		spare.readers[t.frames].give(t.reader)
		t.reader, t.news = nil, true
		t.drive()
	}
}

// drive carries out what the conversation asks for, until it has to wait.
func (t *conversation) drive() {
	p := t.peer
	for !t.over && (t.news || !t.pausing) {
		t.news = false
		frame, do := t.session.Next(p.now(), &p.world.spare.frame)
		switch do {
		case session.Wait:
			return
		case session.Send:
			t.send(frame)
		case session.CloseWrite:
			t.end.CloseWrite()
		case session.Ask:
			p.conversations.ask(t)
		case session.Agreed:
			t.frames = large
			p.conversations.agreed(t)
			p.conversations.watch()
		case session.Slices:
			t.slices = p.now()
			p.conversations.watch()
		case session.Lane:
			t.session.(*session.Served).Decline(wire.ReasonBusy, "one lane is enough here")
		case session.Over:
			t.finish()
		}
	}
}

// send sends a whole frame.
func (t *conversation) send(frame []byte) {
	w := t.peer.world
	t.peer.sent(t.partner, len(frame))
	if err := t.end.Write(frame); err != nil {
		t.session.Fail(err)
		return
	}
	first := !t.begun
	t.begun = true
	if left := t.end.stream.line.left(t.end.way); t.paced && !first && left > w.queue.Now() {
		t.pausing = true
		w.queue.After(left-w.queue.Now(), func() {
			t.pausing = false
			t.received = w.queue.Now() // a partner has no deadline while this side sends
			if !t.peer.gone {
				t.drive()
				t.peer.conversations.watch()
			}
		})
	}
}

// breakOff ends a conversation for a reason of this side's.
func (t *conversation) breakOff(err error) {
	if t.over {
		return // another conversation may use its session by now
	}
	t.session.Fail(err)
	t.news = true
	t.drive()
}

// finish ends a conversation in which all has been said.
func (t *conversation) finish() {
	if t.over {
		return
	}
	t.leave()
	r := t.session.End(t.peer.now(), session.Seen{
		Sent: uint64(t.end.written), Received: uint64(t.end.other.written), Longest: t.longest, Opening: t.opening,
	})
	if r.Ending == session.Resetting {
		t.end.Reset()
	} else {
		t.end.CloseWrite()
	}
	t.peer.conversations.conclude(t, r)
}

// leave removes the conversation from its peer's list. Bytes that arrive later are not read.
func (t *conversation) leave() {
	t.over, t.end.deaf = true, true
	all := &t.peer.conversations.all
	*all = slices.DeleteFunc(*all, func(other *conversation) bool { return other == t })
}

// deadline is the time until which this side waits for the partner, and the error after that.
func (t *conversation) deadline() (at time.Duration, err error) {
	b := t.session.Bounds()
	at, err = t.received+b.Frame, ErrStalled
	switch {
	case t.pausing:
		at = math.MaxInt64
	case b.First > 0 && t.slices > 0:
		at = min(at, t.slices+b.First)
	}
	if b.End > 0 && b.End < at {
		at, err = b.End, links.ErrLate
	}
	return at, err
}

// answer carries out the machine's answer to a partner's proposal.
func (t *conversation) answer(a averaging.Action) {
	if s, ok := t.session.(*session.Served); ok {
		s.Answer(t.peer.now(), a)
		t.drive()
	}
}
