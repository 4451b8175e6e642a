package session

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Served is a stream that a partner has opened: its first frame decides which conversation
// it carries. It is reused.
type Served struct {
	side
	kind   wire.Type // of the first frame; 0 while none has come, or once it is declined
	codecs []coding.ID
	wanted collective.Event // what the averaging machine is asked

	refusal  wire.Refuse // the refusal, if this side declines
	proposal wire.Propose
	offer    wire.Offer
	accept   wire.Accept

	question  question
	answer    answer
	responder replica.Responder // of an exchange
	receiver  replica.Receiver  // of a transfer
	lanes     [replica.MaxLanes]ServedLane
	number    int           // of the lane that a LANE names
	agreed    bool          // slices, or parts, may come
	asked     bool          // the averaging machine knows the exchange
	period    time.Duration // of the partner's quarantine for its request
}

// Begin begins to listen to a partner.
func (s *Served) Begin(local *Host, now time.Duration, partner topology.PeerID) {
	s.side.begin(local, now, partner, 0)
	s.responder.Use(local.Replica, local.Ledger)
	s.receiver.Use(local.Replica)
	s.kind, s.question, s.answer = 0, question{}, answer{}
	s.wanted, s.refusal = collective.Event{}, wire.Refuse{}
	s.agreed, s.asked, s.period = false, false, 0
}

// Next implements Conversation.
func (s *Served) Next(now time.Duration, buf *[]byte) (frame []byte, do Do) {
	frame, do, err := s.next(now, buf)
	if err != nil {
		s.Fail(err)
		return s.Next(now, buf)
	}
	return frame, do
}

func (s *Served) next(now time.Duration, buf *[]byte) (frame []byte, do Do, err error) {
	switch s.phase {
	case opening:
		return s.speak(buf)
	case entering:
		s.phase = inquiring
		if s.refusal.Reason != 0 {
			s.decline()
		}
		return nil, Enter, nil
	case inquiring:
		return s.inquire(buf)
	case asking:
		s.phase, s.asked = answering, true
		return nil, Ask, nil
	case agreeing:
		s.phase = accepting
		return nil, Agreed, nil
	case accepting:
		s.phase = ranging
		frame, err = packTerms(s.local, buf, s.id, s.accept)
		return frame, Send, err
	case ranging:
		return s.prepare(now, buf)
	case slicing:
		return s.slice(now, buf)
	case confirming:
		s.phase = over
		frame = wire.Reserve(*buf)
		*buf = frame
		return frame, Send, wire.Seal(frame, wire.Header{Type: wire.TypeTaken, Exchange: s.id})
	case informing:
		s.phase = refusing
		if record := s.local.Peer.Record(); len(record) > 0 && len(record) <= wire.MaxSigned {
			frame, err = pack(buf, s.id, wire.Record{View: s.local.Peer.Now().View, Signed: record})
			return frame, Send, err
		}
		return s.next(now, buf)
	case refusing:
		s.phase = over
		frame, err = pack(buf, s.id, s.refusal)
		return frame, Send, err
	case over:
		return nil, Over, nil
	}
	return nil, Wait, nil
}

// speak does what is due on a stream whose first frame has not come, or that carries
// questions.
func (s *Served) speak(buf *[]byte) (frame []byte, do Do, err error) {
	switch {
	case s.answer.due:
		frame, err = s.answer.say(buf)
		return frame, Send, err
	case s.kind == wire.TypeTell, s.kind == wire.TypeSum:
		s.phase = answering
		return nil, Tell, nil
	case s.kind == wire.TypeLane:
		s.phase = answering
		return nil, Lane, nil
	}
	return nil, Wait, nil
}

// inquire asks the partner about slices in doubt, before the averaging machine is asked: a
// peer can take a new incarnation and still know what it did.
func (s *Served) inquire(buf *[]byte) (frame []byte, do Do, err error) {
	if s.question.due {
		return nil, Wait, nil
	}
	if s.kind == wire.TypePropose {
		if frame, more, err := s.question.next(&s.side, buf); more || err != nil {
			return frame, Send, err
		}
		s.local.Ledger.Reborn(string(s.partner), s.proposal.Incarnation)
	}
	s.phase = asking
	return s.next(0, buf)
}

// prepare sends the partner the ranges of this side's model before slices move.
func (s *Served) prepare(now time.Duration, buf *[]byte) (frame []byte, do Do, err error) {
	if s.kind == wire.TypeOffer {
		s.phase = slicing
		return s.slice(now, buf)
	}
	frame, more, err := s.responder.Ranges(*buf)
	if *buf = frame; err != nil || more {
		return frame, Send, err
	}
	s.phase = slicing
	s.bounds.First = s.local.Links.Opening(s.partner)
	return nil, Slices, nil
}

// slice does what is due while slices, or parts, move.
func (s *Served) slice(now time.Duration, buf *[]byte) (frame []byte, do Do, err error) {
	if s.kind == wire.TypeOffer {
		if !s.receiver.Done() {
			return nil, Wait, nil
		}
		s.phase = confirming
		return s.next(0, buf)
	}
	first := &s.lanes[0]
	frame, do = first.Next(now, buf)
	if do == Over {
		s.phase, s.err = over, first.err
	}
	return frame, do, nil
}

// Receive implements Conversation.
func (s *Served) Receive(now time.Duration, h wire.Header, payload []byte) {
	s.bounds.First = 0
	var err error
	switch {
	case s.kind == 0 && s.phase == opening:
		err = s.request(now, h, payload)
	case s.phase == opening && s.kind == wire.TypeStatus && h.Type == s.kind:
		err = s.answer.receive(s.local, s.partner, h, payload)
	case s.phase == inquiring && s.question.due:
		err = s.question.answered(&s.side, h, payload)
	case s.phase == slicing && s.kind == wire.TypePropose:
		s.lanes[0].Receive(now, h, payload)
	case s.phase == slicing && h.Type == wire.TypePart:
		err = s.receiver.Part(h, payload)
	default:
		err = fmt.Errorf("got %v out of turn: %w", h.Type, wire.ErrType)
	}
	if err != nil {
		s.Fail(err)
	}
}

// Close implements Conversation.
func (s *Served) Close() {
	switch {
	case s.phase == slicing && s.kind == wire.TypePropose:
		s.lanes[0].Close()
	case s.phase == opening:
		s.phase = over // nothing was asked, or nothing more will be
	default:
		s.Fail(fmt.Errorf("waiting for %v: %w", s.due(), io.ErrUnexpectedEOF))
	}
}

// due is what the partner is to send next.
func (s *Served) due() wire.Type {
	if s.phase == inquiring {
		return wire.TypeSettled
	}
	return wire.TypePart
}

// Fail implements Conversation.
func (s *Served) Fail(err error) {
	switch {
	case s.refusal.Reason != 0:
		s.phase = over // the partner cannot be informed
	case s.phase == slicing && s.kind == wire.TypePropose:
		s.lanes[0].Fail(err)
	case s.fail(err):
		tell := s.agreed || s.phase == opening
		s.phase = over
		if reason, theirs := replica.Blame(s.err); theirs && tell {
			s.refusal, s.phase = wire.Refuse{Reason: reason, Detail: s.err.Error()}, refusing
		}
	}
}

// Break implements Conversation. A declined request stays declined.
func (s *Served) Break(err error) {
	if s.refusal.Reason == 0 {
		s.err = err
	}
	s.phase = over
}

// Decline refuses a request that the driver cannot serve.
func (s *Served) Decline(reason wire.Reason, detail string) {
	s.refusal = wire.Refuse{Reason: reason, Detail: detail}
	s.decline()
}

// decline sends the refusal; if it is for the role, this side's record comes first.
func (s *Served) decline() {
	s.phase = refusing
	if s.refusal.Reason == wire.ReasonRole {
		s.phase = informing
	}
}

// Event is the question to the averaging machine at Ask.
func (s *Served) Event() collective.Event { return s.wanted }

// Exchange is the number of the exchange or transfer in the partner's first frame.
func (s *Served) Exchange() averaging.ExchangeID { return averaging.ExchangeID(s.id) }

// Kind is the type of the partner's first frame; 0 if none has come yet.
func (s *Served) Kind() wire.Type { return s.kind }

// Codecs are those agreed on.
func (s *Served) Codecs() []coding.ID { return s.codecs }

// Lanes is the number of streams agreed.
func (s *Served) Lanes() int { return s.responder.Lanes() }

// LaneNumber is the number of the lane that is opened at Lane.
func (s *Served) LaneNumber() int { return s.number }

// Lane is one of the streams of an exchange. The first is driven by Next and Receive of the
// conversation itself.
func (s *Served) Lane(i int) *ServedLane { return &s.lanes[i] }

// Done tells whether both sides have applied the whole exchange.
func (s *Served) Done() bool { return s.responder.Done() }

// Err is why the conversation has failed, if it has.
func (s *Served) Err() error { return s.err }

// Values is the number of values that a transfer moves.
func (s *Served) Values() int { return s.receiver.Values() }

// End implements Conversation.
func (s *Served) End(now time.Duration, seen Seen) Result {
	r := Result{Err: s.err, Reason: s.refusal.Reason, Detail: s.refusal.Detail, Ending: Resetting}
	if s.refusal.Reason != 0 {
		r.Ending = Finishing
	}
	switch {
	case s.agreed && s.kind == wire.TypePropose:
		s.finish(now, &r)
	case s.agreed && s.err == nil:
		r.Outcome, r.Ending = Finished, Closing
	case s.agreed, s.asked && s.err != nil:
		r.Outcome = Failed
	case s.refusal.Reason != 0 && s.err != nil:
		r.Outcome = Malformed
	case s.refusal.Reason != 0:
		r.Outcome, r.Quarantine = Declined, s.period
		if s.period > 0 {
			r.Err = s.taking().Check()
		}
	case s.err == nil:
		r.Ending = Closing
	}
	s.phase = over
	if r.Outcome == Finished || r.Outcome == Failed {
		s.ended(now, seen, &r)
	}
	return r
}

// finish ends an exchange in the replica.
func (s *Served) finish(now time.Duration, r *Result) {
	r.Outcome, r.Ending = Finished, Closing
	if !s.responder.Done() {
		if r.Err == nil {
			r.Err = ErrLaneMissing
		}
		r.Outcome, r.Ending = Failed, s.lanes[0].Ending()
		if s.lanes[0].err == nil {
			r.Ending = Resetting
		}
	} else {
		r.Err = nil
	}
	r.Retransmitted, r.Distance = s.responder.Retransmitted(), s.responder.Distance()
	r.InDoubt = s.responder.End(now)
}
