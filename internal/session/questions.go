package session

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// An exchange that breaks off can leave slices in doubt at the passive side, which asks
// the active one about them with STATUS: before it answers the next proposal, and of its
// own accord until then.

// question is the asking side: one question at a time.
type question struct {
	exchange uint64
	status   wire.Status
	number   int  // of questions so far
	due      bool // an answer is
}

// next encodes the next question as the frame to send. more is false if none is left.
func (q *question) next(s *side, buf *[]byte) (frame []byte, more bool, err error) {
	if q.number == maxQuestions {
		return nil, false, nil
	}
	q.exchange, q.status, more = s.local.Ledger.Ask(string(s.partner))
	if !more {
		return nil, false, nil
	}
	q.number++
	q.due = true
	frame, err = pack(buf, q.exchange, q.status)
	return frame, true, err
}

// answered takes the partner's answer.
func (q *question) answered(s *side, h wire.Header, payload []byte) error {
	var answer wire.Settled
	switch {
	case h.Type == wire.TypeRefuse:
		return wire.Refused(payload)
	case h.Type != wire.TypeSettled || !q.due:
		return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeSettled, h.Type, wire.ErrType)
	case h.Exchange != q.exchange:
		return fmt.Errorf("answer about exchange %d where %d was asked for: %w", h.Exchange, q.exchange, wire.ErrMessage)
	}
	if err := answer.Decode(payload); err != nil {
		return err
	}
	q.due = false
	s.local.Peer.Settle(s.partner, q.exchange, q.status, answer)
	return nil
}

// answer is the answering side: one answer at a time.
type answer struct {
	exchange uint64
	settled  wire.Settled
	number   int  // of questions so far
	due      bool // it is to be sent
}

// receive takes a question.
func (a *answer) receive(local *Host, partner topology.PeerID, h wire.Header, payload []byte) error {
	var status wire.Status
	if err := status.Decode(payload); err != nil {
		return err
	}
	if a.number++; a.number > maxQuestions {
		return fmt.Errorf("more than %d questions: %w", maxQuestions, wire.ErrMessage)
	}
	a.exchange, a.settled, a.due = h.Exchange, local.Ledger.Answer(string(partner), h.Exchange, status), true
	return nil
}

// say encodes the answer as the frame to send.
func (a *answer) say(buf *[]byte) ([]byte, error) {
	a.due = false
	return pack(buf, a.exchange, a.settled)
}

// Inquiry asks a partner about everything that is in doubt with it.
type Inquiry struct {
	side
	question question
}

// Begin begins to ask.
func (q *Inquiry) Begin(local *Host, now time.Duration, partner topology.PeerID) {
	q.side.begin(local, now, partner, 0)
	q.question = question{}
	q.phase = inquiring
}

// Next implements Conversation.
func (q *Inquiry) Next(_ time.Duration, buf *[]byte) ([]byte, Do) {
	switch {
	case q.phase == over:
		return nil, Over
	case q.question.due:
		return nil, Wait
	}
	frame, more, err := q.question.next(&q.side, buf)
	if err != nil {
		q.Fail(err)
	}
	if !more || err != nil {
		q.phase = over
		return nil, Over
	}
	return frame, Send
}

// Receive implements Conversation.
func (q *Inquiry) Receive(_ time.Duration, h wire.Header, payload []byte) {
	if err := q.question.answered(&q.side, h, payload); err != nil {
		q.Fail(err)
	}
}

// Close implements Conversation.
func (q *Inquiry) Close() {
	q.Fail(fmt.Errorf("waiting for %v: %w", wire.TypeSettled, io.ErrUnexpectedEOF))
}

// Fail implements Conversation.
func (q *Inquiry) Fail(err error) {
	if q.fail(err) {
		q.phase = over
	}
}

// End implements Conversation.
func (q *Inquiry) End(time.Duration, Seen) Result {
	if q.err != nil {
		return Result{Outcome: Nothing, Ending: Resetting, Err: q.err}
	}
	return Result{}
}
