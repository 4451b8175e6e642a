package session

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// SendingLane is one stream's part of an exchange that this side initiates. One goroutine
// may call Next while another calls Receive and Close: the two share nothing but the
// replica's lane.
type SendingLane struct {
	lane     *replica.InitiatorLane
	exchange uint64
	number   int
	first    int           // slices in flight to begin with
	began    time.Duration // when the first slice was sent
	round    time.Duration // from a question to its answer
	until    time.Duration // a partial exchange takes no longer; 0 if it is whole
	back     int           // slices that had come back when the first was seen to have,
	since    time.Duration // and when that was
	said     bool          // the frame that opens a further lane has been sent
	acked    bool          // the last acknowledgement has been sent
	closed   bool
}

// Next says what to do next: Send, CloseWrite, or Wait until Receive has taken another
// difference; Over once everything has been sent.
func (l *SendingLane) Next(now time.Duration, buf *[]byte) (frame []byte, do Do, err error) {
	switch {
	case l.closed:
		return nil, Over, nil
	case l.acked:
		l.closed = true
		return nil, CloseWrite, nil
	case !l.said:
		l.said = true
		frame, err = pack(buf, l.exchange, wire.Lane{Lane: uint8(l.number)})
		return frame, Send, err
	}
	if l.lane.Flying() >= l.window(now) {
		return nil, Wait, nil
	}
	if l.until > 0 && now+l.expected(now) > l.until {
		l.lane.Leave()
	}
	frame, ok, err := l.lane.Code(*buf)
	if *buf = frame; err != nil || ok {
		return frame, Send, err
	}
	if !l.lane.Over() {
		return nil, Wait, nil
	}
	l.acked = true
	frame, err = l.lane.Ack(*buf)
	*buf = frame
	return frame, Send, err
}

// window is how many slices may be in flight: the initial number, or, on a long and fast link,
// twice the number that come back in a round trip. So the window grows until slices wait on
// the link for as long as they travel, and on a slow link it keeps its initial size.
func (l *SendingLane) window(now time.Duration) int {
	l.began = cmp.Or(l.began, now)
	rate := float64(l.lane.Applied()) / float64(max(now-l.began, 1))
	return max(l.first, int(2*rate*float64(l.round)))
}

// expected is how long it takes, at the pace at which slices have come back since the first, until
// one that is sent now has come back.
func (l *SendingLane) expected(now time.Duration) time.Duration {
	back := l.lane.Applied()
	if l.back == 0 {
		l.back, l.since = back, now
	}
	if back == l.back {
		return 0
	}
	return (now - l.since) / time.Duration(back-l.back) * time.Duration(l.lane.Flying()+1)
}

// Over tells whether only the end of the partner's stream is still to come.
func (l *SendingLane) Over() bool { return l.lane.Over() }

// Receive applies a difference.
func (l *SendingLane) Receive(h wire.Header, payload []byte) error {
	switch h.Type {
	case wire.TypeDiff:
		return l.lane.Diff(h, payload)
	case wire.TypeRefuse:
		return wire.Refused(payload)
	}
	return fmt.Errorf("waiting for a difference: got %v: %w", h.Type, wire.ErrType)
}

// Close takes the end of the partner's stream: a failure, unless other lanes took the
// remaining slices.
func (l *SendingLane) Close() error {
	if l.lane.Over() {
		return nil
	}
	return fmt.Errorf("waiting for a difference: %w", io.ErrUnexpectedEOF)
}

// ServedLane is one stream's part of an exchange that this side serves.
type ServedLane struct {
	lane     *replica.ResponderLane
	exchange uint64
	reply    []byte // to be sent
	phase    phase  // slicing, refusing or over
	err      error
}

func (l *ServedLane) begin(lane *replica.ResponderLane, exchange uint64) {
	*l = ServedLane{lane: lane, exchange: exchange, phase: slicing}
}

// Next says what to do next: Send, Wait or Over.
func (l *ServedLane) Next(_ time.Duration, buf *[]byte) (frame []byte, do Do) {
	switch {
	case l.phase == refusing:
		l.phase = over
		if reason, theirs := replica.Blame(l.err); theirs {
			if frame, err := pack(buf, l.exchange, wire.Refuse{Reason: reason, Detail: l.err.Error()}); err == nil {
				return frame, Send
			}
		}
		return nil, Over
	case l.phase == over:
		return nil, Over
	case l.reply != nil:
		frame, l.reply = l.reply, nil
		return frame, Send
	}
	return nil, Wait
}

// Receive answers a slice, or applies what has been acknowledged.
func (l *ServedLane) Receive(_ time.Duration, h wire.Header, payload []byte) {
	var err error
	switch h.Type {
	case wire.TypeCode:
		l.reply, err = l.lane.Code(h, payload)
	case wire.TypeAck:
		err = l.lane.Ack(h)
	default:
		err = fmt.Errorf("waiting for a slice: got %v: %w", h.Type, wire.ErrType)
	}
	if err != nil {
		l.Fail(err)
	}
}

// Close takes the end of the partner's stream.
func (l *ServedLane) Close() {
	if !l.lane.Idle() {
		l.Fail(fmt.Errorf("waiting for a slice: %w", io.ErrUnexpectedEOF))
	} else if l.phase == slicing {
		l.phase = over
	}
}

// Fail ends the lane.
func (l *ServedLane) Fail(err error) {
	if l.phase == slicing {
		l.phase, l.err = refusing, err
	}
}

// Err is why the lane failed, nil if it ended in good order.
func (l *ServedLane) Err() error { return l.err }

// Harmless tells whether nothing is lost if the lane ends now, so that other lanes can do
// its work.
func (l *ServedLane) Harmless() bool {
	_, theirs := replica.Blame(l.err)
	return !theirs && l.lane.Idle()
}

// Ending is what to do with the lane's stream once it is over.
func (l *ServedLane) Ending() Ending {
	switch _, theirs := replica.Blame(l.err); {
	case l.err == nil:
		return Closing
	case theirs:
		return Finishing
	}
	return Resetting
}
