package peer

import (
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// serveExchange answers what comes on a stream of the exchange protocol: a
// proposal, a further lane of an exchange under way, or a question about one that
// broke off.
func (p *Peer) serveExchange(stream seam.Stream) {
	t := p.talk(stream)
	defer p.end(t)
	t.stall = p.patience(stream.Remote())
	header, payload, err := t.next()
	switch {
	case err != nil:
	case !p.flock.here(stream.Remote()):
		p.turnAway(t, header)
	case header.Type == wire.TypePropose:
		var proposal wire.Propose
		if err = proposal.Decode(payload); err == nil {
			p.serveProposal(t, header, proposal)
		}
	case header.Type == wire.TypeLane:
		var lane wire.Lane
		if err = lane.Decode(payload); err == nil {
			p.serveLane(t, header, lane)
		}
	case header.Type == wire.TypeStatus:
		err = p.serveStatus(t, header, payload)
	case header.Type == wire.TypeOffer:
		var offer wire.Offer
		if err = offer.Decode(payload); err == nil {
			p.serveOffer(t, header, offer)
		}
	case header.Type == wire.TypeTell && !p.heedsWords:
		p.counters.declined.Add(1)
		tally(&p.counters.tallies.declined, wire.ReasonRound)
		t.refuse(0, wire.ReasonRound, "the algorithm of this peer heeds no words")
	case header.Type == wire.TypeTell:
		err = p.serveWords(t, header, payload)
	default:
		err = fmt.Errorf("waiting for a proposal: got %v: %w", header.Type, wire.ErrType)
	}
	if err != nil {
		p.malformed(t, stream, err)
	}
}

// turnAway refuses whatever one asks that is no member, as far as this peer knows: no
// place is held for it, nor a question answered. If it is one, its record is on its way
// here, or it compares what it knows with this peer.
func (p *Peer) turnAway(t *talk, header wire.Header) {
	p.counters.declined.Add(1)
	tally(&p.counters.tallies.declined, wire.ReasonNotMember)
	t.refuse(header.Exchange, wire.ReasonNotMember, "this peer has no record of yours")
}

// serveProposal answers a proposal and serves the exchange, if it comes to one.
func (p *Peer) serveProposal(t *talk, header wire.Header, proposal wire.Propose) {
	x := newTracked(averaging.Event{
		Kind: averaging.Proposed, Peer: topology.PeerID(t.stream.Remote()),
		Exchange: averaging.ExchangeID(header.Exchange), Incarnation: proposal.Incarnation, Inbound: true,
	})
	x.add(t)
	if !p.underway.enter(x) {
		t.stream.Reset()
		return
	}
	defer p.underway.leave(x)
	codecs, reason, detail := p.examine(t, proposal)
	if reason == 0 {
		err := p.settleOn(t) // a peer can take a new incarnation and still know what it did
		if err != nil {
			p.log.Debug("a partner did not answer about a broken exchange", zap.String("peer", string(x.event.Peer)), zap.Error(err))
			t.stream.Reset()
			return
		}
		p.sides.ledger.Reborn(string(t.stream.Remote()), proposal.Incarnation)
	}
	var overlap int
	if reason == 0 {
		overlap, reason = p.ask(x, t)
	}
	if reason != 0 {
		p.decline(x, t, reason, detail)
		return
	}
	p.respond(x, t, replica.Terms{
		Partner: string(t.stream.Remote()), Incarnation: proposal.Incarnation, Exchange: header.Exchange, Codecs: codecs,
		Window: p.granted(), Lanes: min(int(proposal.Lanes), p.config.Exchange.Lanes),
		Overlap: min(max(overlap, int(proposal.Overlap)), maxOverlap),
	})
}

// examine finds what makes an exchange impossible, whatever the machine thinks of
// it. The reason is 0 if nothing does.
func (p *Peer) examine(t *talk, m wire.Propose) (codecs []quant.ID, reason wire.Reason, detail string) {
	if reason, detail = p.admissible(m.Run, m.Layout); reason != 0 {
		return nil, reason, detail
	}
	if left := p.quarantine.left(t.stream.Remote(), time.Now()); left > 0 {
		return nil, wire.ReasonQuarantine, fmt.Sprintf("for another %s", left.Round(time.Second))
	}
	switch {
	case int(m.SliceLen) != p.replica.SliceLen():
		return nil, wire.ReasonLayout, fmt.Sprintf("slices here have %d values, yours %d: set Exchange.SliceLen alike", p.replica.SliceLen(), m.SliceLen)
	case m.Cut != p.cut:
		return nil, wire.ReasonLayout, "slices here begin elsewhere: the releases differ in how they cut a model"
	case !p.arrival.open():
		return nil, wire.ReasonBusy, "still copying the model"
	}
	if t.codecs = known(t.codecs, m.Codecs); len(t.codecs) > 0 {
		return t.codecs, 0, ""
	}
	return nil, wire.ReasonCodec, fmt.Sprintf("known here: %v", quant.Names())
}

// ask puts a proposal to the machine. The reason is 0 if it accepts; overlap then
// counts the exchanges that this peer takes part in. An exchange that is broken off
// meanwhile has failed, whatever the machine says to it.
func (p *Peer) ask(x *tracked, t *talk) (overlap int, reason wire.Reason) {
	select {
	case <-p.closing:
		return 0, wire.ReasonClosing
	default:
	}
	t.calm()
	if !p.notify(notice{event: x.event, proposed: x, verdict: t.verdict}) {
		return 0, wire.ReasonClosing
	}
	for x.cause() == nil {
		select {
		case action := <-t.verdict:
			if action.Kind == averaging.Accept {
				return max(action.Overlap, 1), 0
			}
			return 0, replica.ReasonOf(action.Reason)
		case <-t.opened: // broken off
		case <-p.running.Done():
			return 0, wire.ReasonClosing
		}
	}
	t.verdict = make(chan averaging.Action, 1) // the answer may yet come, and is not for whom the talk serves next
	p.failed(x, x.cause())
	return 0, wire.ReasonClosing
}

// decline refuses a proposal and says so where an operator should know.
func (p *Peer) decline(x *tracked, t *talk, reason wire.Reason, detail string) {
	p.counters.declined.Add(1)
	tally(&p.counters.tallies.declined, reason)
	if reason.Permanent() {
		p.log.Warn("refused a peer's proposal", zap.String("peer", string(x.event.Peer)),
			zap.Stringer("reason", reason), zap.String("detail", detail), zap.String("remedy", reason.Remedy()))
	}
	if reason == wire.ReasonRole {
		p.tellRecord(t, uint64(x.event.Exchange))
	}
	t.refuse(uint64(x.event.Exchange), reason, detail)
}

// malformed ends a stream on which no request could be read.
func (p *Peer) malformed(t *talk, stream seam.Stream, err error) {
	reason, theirs := wire.ReasonFor(err)
	if !theirs {
		stream.Reset() // nobody is there to be told, or the peer is closing
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			p.log.Debug("a stream without a request", zap.String("peer", string(stream.Remote())), zap.Error(err))
		}
		return
	}
	p.counters.declined.Add(1)
	tally(&p.counters.tallies.declined, reason)
	p.log.Warn("refused a stream that speaks otherwise", zap.String("peer", string(stream.Remote())),
		zap.Error(err), zap.String("remedy", reason.Remedy()))
	t.refuse(0, reason, err.Error())
}
