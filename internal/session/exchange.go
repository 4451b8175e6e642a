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
)

const (
	// maxQuestions bounds the questions on one stream.
	maxQuestions = 8
	// maxOverlap is the largest number of simultaneous exchanges that a message can hold.
	maxOverlap = 255
)

// Exchange is an exchange that this side initiates. It is reused, also by other peers with
// models cut alike.
type Exchange struct {
	side
	initiator replica.Initiator
	overlap   int
	within    time.Duration // the time of a partial exchange
	across    float64       // as in averaging.Action, and so is view
	view      uint64
	offer     links.Offer
	agreed    links.Offer // the part of it that the partner has accepted
	room      coding.Plan // for the plan of the moment
	proposed  wire.Propose
	accept    wire.Accept // its memory is used again

	asked, answered time.Duration // when the proposal was made, and accepted
	answer          answer
	recordReceived  bool // the partner has sent its record
	lanes           [replica.MaxLanes]SendingLane
	clean           bool // the partner is known to have applied all
}

// Begin begins the exchange that an action proposes. Offer is what slices may be coded with.
func (x *Exchange) Begin(local *Host, now time.Duration, action averaging.Action, offer links.Offer) {
	x.side.begin(local, now, action.Peer, uint64(action.Exchange))
	x.initiator.Use(local.Replica, local.Ledger)
	x.bounds.Frame = local.Links.Answer(action.Peer)
	x.overlap, x.within, x.offer = min(max(action.Overlap, 1), maxOverlap), action.Within, offer
	x.across, x.view = action.Across, action.View
	x.answer, x.recordReceived, x.clean = answer{}, false, false
}

// Next implements Conversation.
func (x *Exchange) Next(now time.Duration, buf *[]byte) (frame []byte, do Do) {
	var err error
	switch x.phase {
	case opening:
		x.phase, x.asked = answering, now
		frame, err = x.propose(now, buf)
		do = Send
	case answering:
		if !x.answer.due {
			return nil, Wait
		}
		frame, err = x.answer.say(buf)
		do = Send
	case agreeing:
		x.phase = ranging
		return nil, Agreed
	case ranging:
		if !x.initiator.Ranged() {
			return nil, Wait
		}
		x.phase = slicing
		return nil, Slices
	case slicing:
		if frame, do, err = x.lanes[0].Next(now, buf); do == Over {
			x.phase = confirming
			return nil, Wait
		}
	case confirming:
		return nil, Wait
	default:
		return nil, Over
	}
	if err != nil {
		x.Fail(err)
		return nil, Over
	}
	return frame, do
}

// propose makes the proposal.
func (x *Exchange) propose(now time.Duration, buf *[]byte) ([]byte, error) {
	l := x.local
	x.proposed = wire.Propose{Opening: l.opening(x.offer.Codecs), Overlap: uint8(x.overlap), Lanes: uint8(l.Links.Lanes(x.partner, now))}
	if x.across > 0 {
		x.proposed.View = x.view
	}
	return packTerms(l, buf, x.id, x.proposed)
}

// Receive implements Conversation.
func (x *Exchange) Receive(now time.Duration, h wire.Header, payload []byte) {
	var err error
	switch x.phase {
	case answering:
		err = x.receive(now, h, payload)
	case ranging:
		err = x.ranges(h, payload)
	case slicing:
		err = x.lanes[0].Receive(h, payload)
	case confirming:
		x.phase = over // whatever it is: it may be a refusal of the last frame sent
	}
	if err != nil {
		x.Fail(err)
	}
}

// receive takes the answer to the proposal. Before it, a partner may ask about broken
// exchanges, or send its record.
func (x *Exchange) receive(now time.Duration, h wire.Header, payload []byte) error {
	switch {
	case h.Type == wire.TypeAccept:
		if err := x.accept.Decode(payload); err != nil {
			return err
		}
		x.answered = now
		x.unsummed = x.local.unsummed(h)
		return x.accepted()
	case h.Type == wire.TypeRefuse:
		return wire.Refused(payload)
	case h.Type == wire.TypeRecord && !x.recordReceived:
		x.recordReceived = true
		var record wire.Record
		if err := record.Decode(payload); err != nil {
			return err
		}
		return x.local.Peer.Received(x.partner, record)
	case h.Type == wire.TypeStatus:
		return x.answer.receive(x.local, x.partner, h, payload)
	}
	return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeAccept, h.Type, wire.ErrType)
}

// accepted checks the terms on which the partner accepts, and begins the exchange.
func (x *Exchange) accepted() error {
	agreed, offered := x.offer.Within(x.accept.Codecs)
	switch {
	case !offered:
		return fmt.Errorf("the partner accepts codecs %v where %v were offered: %w", x.accept.Codecs, x.offer.Codecs, wire.ErrMessage)
	case x.accept.Overlap < x.proposed.Overlap || x.accept.Lanes > x.proposed.Lanes:
		return fmt.Errorf("the partner accepts %d lanes and an overlap of %d where %d and %d were proposed: %w",
			x.accept.Lanes, x.accept.Overlap, x.proposed.Lanes, x.proposed.Overlap, wire.ErrMessage)
	}
	x.agreed = agreed
	plan := agreed.Plan.During(&x.room, x.local.Peer.Now().Progress)
	first, most := x.local.window(plan, x.Round())
	x.initiator.Begin(replica.Terms{
		Partner: string(x.partner), Incarnation: x.proposed.Incarnation, Exchange: x.id, Plan: plan, Codecs: agreed.IDs,
		Window: min(int(x.accept.Window), most), Lanes: int(x.accept.Lanes), Overlap: int(x.accept.Overlap),
		Partial: x.within > 0, Across: x.across, Unsummed: x.unsummed,
	})
	until := time.Duration(0)
	if x.within > 0 {
		until = x.began + x.within
	}
	for i := range x.initiator.Lanes() {
		x.lanes[i] = SendingLane{lane: x.initiator.Lane(i), exchange: x.id, number: i, first: first, round: x.Round(), until: until, said: i == 0}
	}
	x.phase = agreeing
	x.bounds.Frame = x.local.Links.Timeout(x.partner)
	x.limit()
	return nil
}

// ranges takes the ranges of the partner's model, which are needed before slices can be coded.
func (x *Exchange) ranges(h wire.Header, payload []byte) error {
	switch h.Type {
	case wire.TypeRanges:
		return x.initiator.Ranges(h, payload)
	case wire.TypeRefuse:
		return wire.Refused(payload)
	}
	return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeRanges, h.Type, wire.ErrType)
}

// Close implements Conversation.
func (x *Exchange) Close() {
	switch x.phase {
	case slicing:
		if err := x.lanes[0].Close(); err != nil {
			x.Fail(err)
		}
		x.clean, x.phase = x.err == nil, over
	case confirming:
		x.clean, x.phase = true, over
	default:
		x.Fail(fmt.Errorf("waiting for %v: %w", wire.TypeAccept, io.ErrUnexpectedEOF))
	}
}

// Fail implements Conversation.
func (x *Exchange) Fail(err error) {
	if x.fail(err) {
		x.phase = over
	}
}

// Joined replaces Receive and Close for a driver that has itself driven all lanes from
// Slices to their ends. clean means that the partner is known to have applied everything;
// err is the error that broke the lanes off, if any.
func (x *Exchange) Joined(clean bool, err error) {
	if err != nil {
		x.Fail(err)
	}
	x.clean, x.phase = clean && err == nil, over
}

// Lanes is the number of streams agreed, and Lane one of them.
func (x *Exchange) Lanes() int { return x.initiator.Lanes() }

// Lane is one of the streams agreed. The first is driven by the exchange's own Next and
// Receive, unless the driver does so itself and calls Joined at the end.
func (x *Exchange) Lane(i int) *SendingLane { return &x.lanes[i] }

// Codecs are those agreed on.
func (x *Exchange) Codecs() []coding.ID { return x.agreed.IDs }

// Event is the event for the averaging machine at Agreed.
func (x *Exchange) Event() collective.Event { return x.event(averaging.Accepted, false) }

// Round is the time from the proposal to its answer.
func (x *Exchange) Round() time.Duration { return x.answered - x.asked }

// End implements Conversation.
func (x *Exchange) End(now time.Duration, seen Seen) Result {
	r := Result{Outcome: Failed, Ending: Resetting, Err: x.err}
	began := x.agreed.IDs != nil
	if links.RanOut(r.Err) && !(began && x.initiator.Applied() > 0) {
		r.Waited = x.bounds.Frame
	}
	if began {
		r.Retransmitted, r.Distance = x.initiator.Retransmitted(), x.initiator.Distance()
		if x.initiator.Done() {
			r.Outcome, r.Ending, r.Err = Finished, Closing, nil
		}
		x.initiator.End(x.clean)
		x.measure(now, seen, &r)
	}
	x.phase, x.agreed = over, links.Offer{}
	if refused, ok := errors.AsType[*wire.Refusal](x.err); ok && !began {
		r.Outcome, r.Ending, r.Reason = Refused, Closing, refused.Reason
		return r
	}
	x.ended(now, seen, &r)
	return r
}

// measure gives the links a sample of the way to the partner. An exchange that ran out of
// time, whichever end noticed first, shows how slow the link is; for other broken exchanges
// it is not known how long nothing moved.
func (x *Exchange) measure(now time.Duration, seen Seen, r *Result) {
	took := now - x.began
	late := errors.Is(r.Err, links.ErrLate) || took >= x.local.Deadline/2 && (errors.Is(r.Err, ErrAborted) || links.RanOut(r.Err))
	if r.Outcome != Finished && !late {
		return
	}
	x.local.Links.Saw(x.partner, links.Sample{
		Bytes: max(seen.Sent, seen.Received), Took: took, Agreed: x.answered - x.began, Round: x.Round(),
		Retransmitted: float64(r.Retransmitted) / float64(max(x.local.Replica.SharedBlocks(), 1)),
	})
}
