package peer

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// talk is a conversation in frames on one stream, with a bound on every wait,
// and the buffers that it needs. Talks are reused.
type talk struct {
	stream         seam.Stream
	stall          time.Duration
	until          time.Time     // the end of the exchange at the latest; zero if there is none
	soon           time.Duration // bounds the wait for the next frame's first bytes; 0 if nothing but the frame's does
	rest           time.Time     // the deadline for that frame, until its first bytes are here
	sign           time.Time     // when these came
	reader         *wire.Reader  // the one of the two below that is in use
	short, long    *wire.Reader  // for requests and answers; for slices
	frame          []byte        // scratch for what is sent
	codecs         []quant.ID    // scratch for those of a proposal
	numbers        []uint8       // scratch for those of an answer
	sent, received uint64
	longest        time.Duration // waited for a frame, at most
	codec          quant.ID      // of the exchange that it is part of, if any

	opened  chan struct{}         // holds a token if the window may have opened
	written chan bool             // what the writing goroutine says when it has ended
	verdict chan averaging.Action // what the machine says to a proposal
	unread  io.LimitedReader      // what the partner still sends
}

// maxIdleTalks bounds the talks kept for reuse: one for each lane of an exchange,
// and one each that is about to replace it.
const maxIdleTalks = 2 * replica.MaxLanes

// talks keeps idle talks.
type talks struct{ idle chan *talk }

func newTalks() talks { return talks{idle: make(chan *talk, maxIdleTalks)} }

// talk starts a talk on a stream.
func (p *Peer) talk(stream seam.Stream) *talk {
	var t *talk
	select {
	case t = <-p.talks.idle:
	default:
		t = &talk{opened: make(chan struct{}, 1), written: make(chan bool, 1), verdict: make(chan averaging.Action, 1)}
		t.short = wire.NewReader(t, wire.MaxHandshake)
	}
	t.stream, t.stall, t.until = stream, p.config.Exchange.Stall, time.Time{}
	t.soon, t.rest = 0, time.Time{}
	t.sent, t.received, t.longest, t.codec = 0, 0, 0, 0
	t.short.Reset(t)
	t.reader = t.short
	return t
}

// bulk makes a talk ready for slices. Until a partner has been accepted, it is not
// worth their memory.
func (t *talk) bulk() {
	if t.long == nil {
		t.long = wire.NewReader(t, wire.MaxPayload)
	}
	t.long.Reset(t)
	t.reader = t.long
}

// end gives a talk back; its stream is closed or reset by then.
func (p *Peer) end(t *talk) {
	p.counters.sent.Add(t.sent)
	p.counters.received.Add(t.received)
	p.counters.tallies.moved(t.codec, t.sent, t.received)
	t.stream = nil
	select {
	case p.talks.idle <- t:
	default:
	}
}

// Read implements io.Reader for the frame readers: it counts.
func (t *talk) Read(b []byte) (int, error) {
	n, err := t.stream.Read(b)
	t.received += uint64(n)
	if n > 0 && !t.rest.IsZero() {
		t.sign = time.Now()
		if err == nil {
			err = t.stream.SetReadDeadline(t.rest)
		}
		t.rest = time.Time{}
	}
	return n, err
}

// next reads a frame, which must have come as a whole within the stall bound.
func (t *talk) next() (wire.Header, []byte, error) {
	began := time.Now()
	deadline, err := t.wait(began)
	if soon := began.Add(t.soon); t.soon > 0 && soon.Before(deadline) {
		deadline, t.rest = soon, deadline
	}
	if err == nil {
		err = t.stream.SetReadDeadline(deadline)
	}
	if err != nil {
		return wire.Header{}, nil, err
	}
	header, payload, err := t.reader.Next()
	t.soon, t.rest = 0, time.Time{}
	t.longest = max(t.longest, time.Since(began))
	return header, payload, err
}

// write sends a whole frame.
func (t *talk) write(frame []byte) error {
	deadline, err := t.wait(time.Now())
	if err == nil {
		err = t.stream.SetWriteDeadline(deadline)
	}
	if err != nil {
		return err
	}
	n, err := t.stream.Write(frame)
	t.sent += uint64(n)
	return err
}

// say sends a message. It is no method because those have no type parameters: a
// message passed as an interface would be allocated.
func say[M wire.Message](t *talk, exchange uint64, m M) error {
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

// hear reads a message of the type that m has, or the refusal that came in its
// stead, as an error of type *refusal.
func (t *talk) hear(m decoder) (wire.Header, error) {
	header, payload, err := t.await(m.Type())
	if err != nil {
		return header, err
	}
	switch header.Type {
	case m.Type():
		return header, m.Decode(payload)
	case wire.TypeRefuse:
		return header, refused(payload)
	}
	return header, fmt.Errorf("waiting for %v: got %v: %w", m.Type(), header.Type, wire.ErrType)
}

// await reads a frame where one of a type is due; an end of the stream is an error.
func (t *talk) await(due wire.Type) (wire.Header, []byte, error) {
	header, payload, err := t.next()
	if err != nil {
		return header, nil, fmt.Errorf("waiting for %v: %w", due, eofIsUnexpected(err))
	}
	return header, payload, nil
}

// eofIsUnexpected makes an end of the stream where more was due an error of its
// own.
func eofIsUnexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decoder is a message that can be read.
type decoder interface {
	wire.Message
	Decode(payload []byte) error
}

// refusal is a partner's REFUSE, as an error.
type refusal struct{ wire.Refuse }

// refused is the error that a REFUSE frame stands for.
func refused(payload []byte) error {
	var r refusal
	if err := r.Decode(payload); err != nil {
		return err
	}
	return &r
}

func (r *refusal) Error() string {
	if r.Detail == "" {
		return fmt.Sprintf("refused: %s. %s", r.Reason, r.Reason.Remedy())
	}
	return fmt.Sprintf("refused: %s (%s). %s", r.Reason, r.Detail, r.Reason.Remedy())
}

// refuse declines what the partner asked for and waits, within the stall bound,
// until it has read that: closing at once could overtake the frame.
func (t *talk) refuse(exchange uint64, reason wire.Reason, detail string) {
	if say(t, exchange, wire.Refuse{Reason: reason, Detail: detail}) != nil {
		t.stream.Reset()
		return
	}
	t.finish()
}

// maxUnread bounds what a partner may still send after our last word: a full window.
const maxUnread = replica.MaxWindow * tensor.ValueSize * wire.MaxSliceLen

// finish ends a talk whose last word was ours: it closes the writing side and
// waits for the partner to close, so that the last frame is not cut off.
func (t *talk) finish() {
	if t.stream.CloseWrite() != nil {
		t.stream.Reset()
		return
	}
	t.drain()
}

// drain waits, within the stall bound, for the partner to close a stream whose
// writing side is closed. What the partner has still sent is not read as frames: it
// may be what made us end. It reports whether the partner has closed in good order,
// which it does only once it has dealt with all that it was sent, and without a word:
// it could be a refusal of what was sent last.
func (t *talk) drain() (inOrder bool) {
	if t.stream.SetReadDeadline(time.Now().Add(t.stall)) != nil {
		t.stream.Reset()
		return false
	}
	t.unread = io.LimitedReader{R: t, N: maxUnread}
	said, err := io.Copy(io.Discard, &t.unread)
	if err != nil || t.unread.N == 0 {
		t.stream.Reset()
		return false
	}
	t.stream.Close()
	return said == 0
}
