package conversations

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// outbound runs the exchanges and transfers that this peer begins. The conversations, with
// their buffers, are kept for reuse.
type outbound struct {
	*outcomes
	exchanges idle.Pool[*session.Exchange]
	transfers idle.Pool[*session.Transfer]
}

const (
	// maxIdleExchanges bounds what is kept of exchanges: one that is in use and one that is
	// about to replace it.
	maxIdleExchanges = 2
	// maxIdleTransfers bounds what is kept of the transfers that this peer sends; several
	// parts travel at once.
	maxIdleTransfers = 4
)

func newOutbound(o *outcomes) *outbound {
	return &outbound{
		outcomes:  o,
		exchanges: idle.NewPool(maxIdleExchanges, func() *session.Exchange { return new(session.Exchange) }),
		transfers: idle.NewPool(maxIdleTransfers, func() *session.Transfer { return new(session.Transfer) }),
	}
}

// Propose begins an exchange. It returns false if the peer is closing or has no model to
// share yet.
func (p *outbound) Propose(action averaging.Action) (*Ongoing, bool) {
	x := newOngoing(collective.Event{Event: averaging.Event{Peer: action.Peer, Exchange: action.Exchange}})
	return x, p.Model.Open() && !p.Life.IsClosing() && p.Life.Tasks.Spawn(func() { p.propose(x, action) })
}

// Send begins a transfer. It returns the same as Propose.
func (p *outbound) Send(action collective.Action) (*Ongoing, bool) {
	x := newOngoing(collective.Event{Event: averaging.Event{Peer: action.Peer, Exchange: action.Exchange}, Transfer: action.Transfer})
	exact := action.Exact
	return x, p.Model.Open() && !p.Life.IsClosing() && p.Life.Tasks.Spawn(func() { p.send(x, exact) })
}

// begun is a conversation that this peer begins and that its machine knows of.
type begun interface {
	session.Conversation
	// Event is what to tell the machine at Agreed.
	Event() collective.Event
	Codecs() []coding.ID
	// Round is the time from the request to its answer.
	Round() time.Duration
}

// propose carries out an exchange from the proposal on.
func (p *outbound) propose(x *Ongoing, action averaging.Action) {
	s := p.exchanges.Take()
	defer p.exchanges.Put(s)
	s.Begin(&p.Host, x.began.Sub(p.Life.Started), action, p.codedFor(x.event.Peer, p.Trainer.StepTime()))
	p.carryThrough(x, s)
}

// send carries out a transfer to a partner, without rounding if it is to be exact.
func (p *outbound) send(x *Ongoing, exact bool) {
	s := p.transfers.Take()
	defer p.transfers.Put(s)
	terms := replica.TransferTerms{Exchange: uint64(x.event.Exchange), Transfer: x.event.Transfer, Stopped: &x.stopped}
	s.Begin(&p.Host, x.began.Sub(p.Life.Started), x.event.Peer, terms, p.oneWayOffer(x.event.Peer, exact))
	p.carryThrough(x, s)
}

// carryThrough drives a conversation that this peer begins, and reports its course to the
// loop.
func (p *outbound) carryThrough(x *Ongoing, s begun) {
	if !p.underway.enter(x) {
		p.failed(x, session.ErrAborted)
		return
	}
	defer p.underway.leave(x)
	t, err := p.open(x)
	if err != nil {
		p.unreached(x, err)
		return
	}
	defer p.done(t)
	t.within(s.Bounds())
	for {
		switch t.drive(s, x) {
		case session.Agreed:
			p.Counters.Answered(s.Round())
			x.agreed(t, s, s.Codecs(), p.Flock.Steps())
			p.Loop.Event(s.Event())
		case session.Slices:
			p.slices(x, t, s.(*session.Exchange))
		case session.Over:
			x.over(t)
			if cause := x.cause(); cause != nil {
				s.Break(cause)
			}
			p.ended(x, t, s.End(p.now(), x.seen()))
			return
		}
	}
}

// open opens a stream to the partner, unless the exchange has been broken off meanwhile.
func (p *outbound) open(x *Ongoing) (*conversation, error) {
	ctx, cancel := context.WithTimeout(p.Life.Working, p.Host.Links.Answer(x.event.Peer))
	defer cancel()
	x.opens(cancel)
	stream, err := p.Transport.Open(ctx, x.event.Peer, transport.ProtocolExchange, p.Host.Run)
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	t := p.conversation(stream)
	if !x.add(t) {
		stream.Reset()
		p.done(t)
		return nil, x.cause()
	}
	return t, nil
}

// slices sends the slices and applies the answers, over the stream of the proposal and as
// many further lanes as were agreed.
func (p *outbound) slices(x *Ongoing, t *conversation, s *session.Exchange) {
	join := func() bool { return true }
	if s.Lanes() > 1 {
		join = p.spread(x, s)
	}
	x.exchange(s.Lane(0), t)
	clean := join()
	clean = x.cause() == nil && t.Drain() && clean // the partner closes it last
	s.Joined(clean, x.cause())
}

// spread drives the further lanes. The function join waits until they have ended, and tells
// whether the partner is known to have applied everything of them.
func (p *outbound) spread(x *Ongoing, s *session.Exchange) (join func() (clean bool)) {
	opening, enough := context.WithCancel(p.Life.Working)
	x.opens(enough)
	var lanes sync.WaitGroup
	var unclean atomic.Bool
	for i := 1; i < s.Lanes(); i++ {
		lanes.Go(func() {
			if !p.further(opening, x, s.Lane(i), i) {
				unclean.Store(true)
			}
		})
	}
	return func() bool {
		enough() // nothing is left for a lane that is not open yet
		lanes.Wait()
		return !unclean.Load()
	}
}

// further opens one more lane and drives it. If the lane cannot be opened, the other lanes do
// its work. It tells whether the partner is known to have applied everything of this lane.
func (p *outbound) further(ctx context.Context, x *Ongoing, lane *session.SendingLane, number int) (clean bool) {
	open, cancel := context.WithTimeout(ctx, p.Stall)
	stream, err := p.Transport.OpenLane(open, x.event.Peer, transport.ProtocolExchange, p.Host.Run, number)
	cancel()
	if err != nil {
		p.Log.Debug("a lane could not be opened; the others do its work",
			zap.String("peer", string(x.event.Peer)), zap.Int("lane", number), zap.Error(err))
		return true
	}
	t := p.conversation(stream)
	defer p.done(t)
	defer x.over(t)
	x.joins(t)
	if ctx.Err() != nil {
		stream.Reset() // it was opened too late
		return x.cause() == nil
	}
	if !x.add(t) {
		stream.Reset()
		return false
	}
	frame, _, err := lane.Next(time.Since(t.started), &t.Frame)
	if err == nil {
		err = t.Send(frame)
	}
	if err != nil {
		stream.Reset() // it has carried no slice yet
		return x.cause() == nil
	}
	if !x.exchange(lane, t) {
		p.Host.Links.LaneFailed(x.event.Peer, p.now())
	}
	return x.cause() == nil && t.Drain()
}

// codedFor is the offer of codecs for an exchange with a partner, for a trainer whose step
// takes so long.
func (p *outbound) codedFor(partner transport.PeerID, step time.Duration) links.Offer {
	offer, d := p.Host.Links.Offer(partner, step)
	if d != nil {
		p.Log.Info("the link to a partner decides on its codec",
			zap.String("peer", string(partner)), zap.String("codec", d.Link.Codec()), zap.String("before", d.Before),
			zap.Float64("bytes_per_second", math.Round(d.Link.Rate)), zap.Duration("round_trip", d.Link.Round),
			zap.Duration("expected", d.Expected), zap.Duration("step", d.Step), zap.Float64("again", d.Link.Retransmitted))
	}
	return offer
}

// oneWayOffer is the offer of codecs for transfers to a partner: that of the run, or one
// without rounding if exact is set or models are averaged.
func (p *outbound) oneWayOffer(partner transport.PeerID, exact bool) links.Offer {
	if exact || !p.Host.Traits.Gradients {
		return links.NewOffer(replica.ExactTerms().Plan)
	}
	return p.codedFor(partner, 0)
}
