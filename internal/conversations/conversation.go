package conversations

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
)

// conversation drives a conversation on a stream. It is reused.
type conversation struct {
	framed.Stream
	started time.Time // of the peer
	codec   coding.ID // of the exchange that it is part of, if any

	opened  chan struct{}         // holds a token if the window may have opened, or the exchange is broken off
	written chan bool             // the result of the writing goroutine
	verdict chan averaging.Action // the machine's answer to a proposal
}

// maxIdleConversations bounds the conversations kept for reuse: two for each lane of an exchange,
// one in use and one about to replace it.
const maxIdleConversations = 2 * replica.MaxLanes

func newConversation() *conversation {
	return &conversation{opened: make(chan struct{}, 1), written: make(chan bool, 1), verdict: make(chan averaging.Action, 1)}
}

// drive sends and receives frames as the speaker says, until the speaker asks for something
// else, which drive returns. The time spent on frames counts for x, if not nil.
func (t *conversation) drive(s session.Speaker, x *Ongoing) session.Do {
	for {
		began := time.Now()
		frame, do := s.Next(began.Sub(t.started), &t.Frame)
		x.worked(began)
		switch do {
		case session.Send:
			if err := t.Later(frame); err != nil {
				s.Fail(fmt.Errorf("sending: %w", err))
			}
		case session.CloseWrite:
			if err := t.CloseWrite(); err != nil {
				s.Fail(fmt.Errorf("ending what is sent: %w", err))
			}
		case session.Wait:
			if !t.Ready() && !t.flush(s) {
				continue
			}
			t.receive(s, x)
		default:
			t.flush(s)
			return do
		}
	}
}

// flush sends what is buffered. It returns false if that fails.
func (t *conversation) flush(s session.Speaker) bool {
	err := t.Flush()
	if err != nil {
		s.Fail(fmt.Errorf("sending: %w", err))
	}
	return err == nil
}

// receive waits for the partner's next frame.
func (t *conversation) receive(s session.Speaker, x *Ongoing) {
	header, payload, err := t.Next()
	began := time.Now()
	switch {
	case err == io.EOF:
		s.Close()
	case err != nil:
		s.Fail(fmt.Errorf("waiting for the partner: %w", err))
	default:
		s.Receive(began.Sub(t.started), header, payload)
		x.worked(began)
	}
}

// within applies the conversation's bounds to the waits for the partner.
func (t *conversation) within(b session.Bounds) {
	t.Stall, t.Soon = b.Frame, b.First
	if b.End > 0 {
		t.Until, t.Late = t.started.Add(b.End), links.ErrLate
	}
}

// finish ends the stream as a conversation says.
func (t *conversation) finish(e session.Ending) {
	switch e {
	case session.Closing:
		t.Close()
	case session.Finishing:
		t.Finish()
	case session.Resetting:
		t.Reset()
	}
}

// calm removes a token that is left over from an earlier exchange. Check afterwards whether
// the current exchange is broken off.
func (t *conversation) calm() {
	for len(t.opened) > 0 {
		<-t.opened
	}
}

// wake leaves a token for a waiting goroutine.
func wake(waiting chan<- struct{}) {
	select {
	case waiting <- struct{}{}:
	default: // a token waits already
	}
}
