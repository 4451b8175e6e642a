package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Transfer is a transfer that this side sends: an OFFER, then PARTs, of which the first may be
// sent before the partner has accepted, if the offer leaves no choice of codecs. It is reused.
type Transfer struct {
	side
	sender   replica.Sender
	terms    replica.TransferTerms
	offer    links.Offer
	agreed   links.Offer
	accept   wire.Accept // its memory is used again
	eager    bool        // parts may go before the answer
	sent     int         // bytes
	poured   bool        // all parts have been sent
	accepted bool

	asked, answered time.Duration
}

// Begin begins a transfer to a partner. Terms say what is moved; the plan is that of the offer.
func (x *Transfer) Begin(local *Host, now time.Duration, partner topology.PeerID, terms replica.TransferTerms, offer links.Offer) {
	x.side.begin(local, now, partner, terms.Exchange)
	x.sender.Use(local.Replica)
	x.terms, x.offer, x.agreed = terms, offer, links.Offer{}
	x.eager, x.sent, x.poured, x.accepted = len(offer.Codecs) == 1, 0, false, false
}

// Next implements Conversation.
func (x *Transfer) Next(now time.Duration, buf *[]byte) (frame []byte, do Do) {
	do, err := Wait, error(nil)
	switch {
	case x.phase == opening:
		x.phase, x.asked = answering, now
		frame, err = x.propose(buf)
		do = Send
	case x.phase == agreeing:
		x.phase = slicing
		if !x.eager {
			err = x.beginSending(x.agreed)
		}
		do = Agreed
	case x.phase == slicing, x.phase == answering && x.eager && x.sent < wire.MaxEager:
		if frame, do, err = x.part(buf); do == Wait && x.phase == slicing {
			x.phase = confirming
		}
	case x.phase == over:
		do = Over
	}
	if err != nil {
		x.Fail(err)
		return nil, Over
	}
	x.sent += len(frame)
	return frame, do
}

// propose makes the offer.
func (x *Transfer) propose(buf *[]byte) ([]byte, error) {
	if err := x.beginSending(x.offer); err != nil {
		return nil, err
	}
	offered := wire.Offer{Opening: x.local.opening(x.offer.Codecs)}
	replica.PutTransfer(&offered, x.terms.Transfer)
	return pack(buf, x.id, offered)
}

func (x *Transfer) beginSending(offer links.Offer) error {
	x.terms.Plan = offer.Plan
	if err := x.sender.Begin(x.terms); err != nil {
		return &OwnFault{err}
	}
	return nil
}

// part encodes the next PART as the frame to send; after the last it closes the writing
// side, and then waits.
func (x *Transfer) part(buf *[]byte) (frame []byte, do Do, err error) {
	if x.poured {
		return nil, Wait, nil
	}
	frame, more, err := x.sender.Next(*buf)
	*buf = frame
	switch {
	case errors.Is(err, replica.ErrStopped):
		return nil, Over, err
	case err != nil:
		return nil, Over, &OwnFault{err}
	case more:
		return frame, Send, nil
	}
	x.poured = true
	return nil, CloseWrite, nil
}

// Receive implements Conversation.
func (x *Transfer) Receive(now time.Duration, h wire.Header, payload []byte) {
	var err error
	switch {
	case h.Type == wire.TypeRefuse:
		err = wire.Refused(payload)
	case x.phase == answering && h.Type == wire.TypeAccept:
		if err = x.accept.Decode(payload); err == nil {
			err = x.receive(now)
		}
	case x.poured && x.accepted && h.Type == wire.TypeTaken && h.Exchange == x.id:
		x.phase = over
	default:
		due := wire.TypeTaken
		if !x.accepted {
			due = wire.TypeAccept
		}
		err = fmt.Errorf("waiting for %v: got %v: %w", due, h.Type, wire.ErrType)
	}
	if err != nil {
		x.Fail(err)
	}
}

// receive takes the partner's ACCEPT.
func (x *Transfer) receive(now time.Duration) error {
	agreed, offered := x.offer.Within(x.accept.Codecs)
	if !offered {
		return fmt.Errorf("the partner accepts codecs %v where %v were offered: %w", x.accept.Codecs, x.offer.Codecs, wire.ErrMessage)
	}
	x.agreed, x.answered, x.accepted = agreed, now, true
	x.phase = agreeing
	x.limit()
	return nil
}

// Close implements Conversation.
func (x *Transfer) Close() {
	x.Fail(fmt.Errorf("waiting for %v: %w", wire.TypeTaken, io.ErrUnexpectedEOF))
}

// Fail implements Conversation.
func (x *Transfer) Fail(err error) {
	if x.fail(err) {
		x.phase = over
	}
}

// Codecs are those agreed on.
func (x *Transfer) Codecs() []coding.ID { return x.agreed.IDs }

// Values is the number of values that the transfer moves.
func (x *Transfer) Values() int { return x.sender.Values() }

// Event is what to tell the averaging machine at Agreed.
func (x *Transfer) Event() collective.Event { return x.event(averaging.Accepted, false) }

// Round is the time from the offer to its answer.
func (x *Transfer) Round() time.Duration { return x.answered - x.asked }

// End implements Conversation.
func (x *Transfer) End(now time.Duration, seen Seen) Result {
	r := Result{Outcome: Finished}
	if x.err != nil {
		r = Result{Outcome: Failed, Ending: Resetting, Err: x.err}
	}
	if refused, ok := errors.AsType[*wire.Refusal](x.err); ok && !x.accepted {
		r.Outcome, r.Ending, r.Reason = Refused, Closing, refused.Reason
		return r
	}
	x.ended(now, seen, &r)
	return r
}
