package conversations

import (
	"cmp"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// inbound serves the streams of the exchange protocol that partners open.
type inbound struct {
	*outcomes
	messages *messages
	served   idle.Pool[*served]
	sessions sessions
}

func newInbound(o *outcomes, w *messages) *inbound {
	return &inbound{outcomes: o, messages: w, served: idle.NewPool(maxIdleExchanges, newServed)}
}

// Serve handles a stream of the exchange protocol: a proposal, an offer, a further lane of
// an exchange under way, questions about a broken exchange, or messages.
func (p *inbound) Serve(stream transport.Stream) {
	t, s := p.conversation(stream), p.served.Take()
	s.Begin(&p.Host, p.now(), stream.Remote())
	t.within(s.Bounds())
	p.listen(s, t)
	if s.Ongoing != nil {
		p.sessions.remove(KeyOf(s.event), s)
		p.underway.leave(s.Ongoing)
		s.Ongoing = nil
	}
	p.served.Put(s)
	p.done(t)
}

// listen serves the partner's request, or declines it.
func (p *inbound) listen(s *served, t *conversation) {
	for {
		switch t.drive(&s.Served, s.Ongoing) {
		case session.Enter:
			s.Ongoing = newOngoing(s.Event())
			s.add(t)
			if !p.underway.enter(s.Ongoing) {
				t.Reset()
				return
			}
		case session.Ask:
			p.ask(s, t)
		case session.Agreed:
			s.agreed(t, s, s.Codecs(), p.Flock.Steps())
			if s.Kind() == wire.TypePropose {
				s.admit()
				p.sessions.add(KeyOf(s.event), s)
			}
		case session.Slices:
			p.serveSlices(s, t)
			return
		case session.Lane:
			key := Key{Peer: t.Remote(), Exchange: s.Exchange(), Inbound: true}
			if of := p.sessions.enter(key, s.LaneNumber()); of != nil {
				p.serveLane(of, s.LaneNumber(), t)
				return
			}
			s.Decline(wire.ReasonBusy, "no such exchange is under way, or it has that lane")
		case session.Tell:
			p.messages.receive(t)
			return
		case session.Over:
			if s.admitted() { // a lane may have come although the answer or a later frame was lost
				s.breakOff(cmp.Or(s.Err(), session.ErrLaneMissing))
				p.leave(s, t, 0)
				s.wait(t.Stall)
			}
			p.dismiss(s, t)
			return
		}
	}
}

// ask asks the machine about the partner's request. If the exchange is broken off meanwhile
// it has failed, whatever the machine answers.
func (p *inbound) ask(s *served, t *conversation) {
	closing := averaging.Action{Kind: averaging.Refuse, Reason: averaging.Closing}
	t.calm()
	if p.Life.IsClosing() || !p.Loop.Ask(s.Event(), s.Ongoing, t.verdict) {
		s.Answer(p.now(), closing)
		return
	}
	for s.cause() == nil {
		select {
		case action := <-t.verdict:
			s.Answer(p.now(), action)
			return
		case <-t.opened: // broken off
		case <-p.Life.Running.Done():
			s.Answer(p.now(), closing)
			return
		}
	}
	t.verdict = make(chan averaging.Action, 1) // a late answer must not reach the next exchange of this conversation
	s.Break(s.cause())
}

// dismiss handles the end of everything requested on a stream.
func (p *inbound) dismiss(s *served, t *conversation) {
	x := s.Ongoing
	if x == nil {
		x = newOngoing(s.Event())
		x.event.Peer = t.Remote()
	}
	x.over(t)
	if cause := x.cause(); cause != nil {
		s.Break(cause)
	}
	p.ended(x, t, s.End(p.now(), x.seen()))
}

// serveSlices serves the first lane of an exchange, waits for the others, and handles the
// end of all.
func (p *inbound) serveSlices(s *served, t *conversation) {
	began := time.Now()
	t.within(s.Bounds())
	t.drive(&s.Served, s.Ongoing)
	if sign := t.Sign; !sign.IsZero() {
		s.opening = sign.Sub(began)
	}
	p.leave(s, t, 0)
	s.wait(t.Stall)
	p.dismiss(s, t)
}

// serveLane serves a further lane of an exchange under way.
func (p *inbound) serveLane(s *served, lane int, t *conversation) {
	s.joins(t)
	if !s.add(t) {
		t.Reset()
	}
	t.drive(s.Lane(lane), s.Ongoing)
	s.over(t)
	p.leave(s, t, lane)
}

// leave handles the end of a lane. Its error ends the exchange, unless nothing was lost
// with it.
func (p *inbound) leave(s *served, t *conversation, lane int) {
	l := s.Lane(lane)
	switch err := l.Err(); {
	case err == nil:
	case lane > 0 && l.Harmless(): // other lanes can do its work
	case l.Ending() == session.Finishing:
		s.breakOffBut(t.Stream.Stream, err)
	default:
		s.breakOff(err)
	}
	if lane > 0 {
		t.finish(l.Ending())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
	wake(s.changed)
}
