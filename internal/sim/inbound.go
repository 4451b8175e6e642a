package sim

import (
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// inbound is what another peer wants on a stream that it has opened: an exchange,
// or the outcome of an earlier one.
type inbound struct {
	*talk
	name      key
	proposal  wire.Propose
	proposed  bool
	asking    bool
	asked     question           // while asking
	responder *replica.Responder // nil until accepted
}

// listen takes part in a stream on which something has come.
func (p *peer) listen(e *end) {
	if e.fault != nil && e.read == len(e.inbox) {
		e.Reset() // opened and closed without a word
		return
	}
	t := p.newTalk(e)
	t.part = &inbound{talk: t}
	t.read()
}

func (x *inbound) hear(h wire.Header, payload []byte) error {
	switch {
	case !x.proposed && !x.peer.knows(x.partner):
		x.name.id = averaging.ExchangeID(h.Exchange)
		x.refuse(wire.ReasonNotMember, "no record of yours")
		return nil
	case !x.proposed && h.Type == wire.TypeStatus:
		if err := x.peer.reply(x.talk, h, payload); err != nil {
			return err
		}
		x.finish()
		return nil
	case !x.proposed && h.Type == wire.TypePropose:
		return x.consider(h, payload)
	case !x.proposed && h.Type == wire.TypeOffer:
		return x.offered(h, payload)
	case x.asking && h.Type == wire.TypeSettled && h.Exchange == x.asked.exchange:
		return x.settled(payload)
	case x.responder != nil && h.Type == wire.TypeCode:
		frame, err := x.responder.Lane(0).Code(h, payload)
		if err != nil {
			return err
		}
		return x.write(frame)
	case x.responder != nil && h.Type == wire.TypeAck:
		return x.acknowledged(h)
	}
	return fmt.Errorf("peer %d: %v out of turn: %w", x.partner, h.Type, wire.ErrType)
}

// consider looks at a proposal: what no machine could forgive is refused at once.
func (x *inbound) consider(h wire.Header, payload []byte) error {
	if err := x.proposal.Decode(payload); err != nil {
		return err
	}
	p := x.peer
	x.proposed = true
	x.name = key{p.world.peers[x.partner].id, averaging.ExchangeID(h.Exchange), true}
	switch m := x.proposal; {
	case m.Layout != p.replica.Layout().Hash() || int(m.SliceLen) != p.replica.SliceLen() || m.Cut != p.replica.Cut():
		x.refuse(wire.ReasonLayout, "another layout or slice length")
	case !slices.Equal(m.Codecs, p.world.codecs):
		x.refuse(wire.ReasonCodec, "another codec")
	case p.running[x.name] != nil:
		x.refuse(wire.ReasonBusy, "the exchange is not over yet")
	default:
		p.ledger.Reborn(string(x.name.partner), m.Incarnation)
		return x.decide()
	}
	return nil
}

// decide asks for the outcome of what is in doubt with the partner, one exchange
// after the other, and then puts the proposal to the machine.
func (x *inbound) decide() error {
	p := x.peer
	if x.asked, x.asking = p.ask(x.name.partner); x.asking {
		return x.say(x.asked.exchange, x.asked.status)
	}
	p.running[x.name] = x
	p.tell(averaging.Event{Kind: averaging.Proposed, Peer: x.name.partner, Exchange: x.name.id, Incarnation: x.proposal.Incarnation, Inbound: true})
	return nil
}

// settled takes the partner's answer.
func (x *inbound) settled(payload []byte) error {
	x.asking = false
	if err := x.peer.settle(x.name.partner, x.asked, payload); err != nil {
		return err
	}
	return x.decide()
}

// answer carries out what the machine says to the proposal.
func (x *inbound) answer(a averaging.Action) {
	if a.Kind == averaging.Refuse {
		delete(x.peer.running, x.name)
		x.refuse(replica.ReasonOf(a.Reason), "")
		return
	}
	p := x.peer
	terms := p.world.config.Terms
	terms.Partner, terms.Incarnation, terms.Exchange = string(x.name.partner), x.proposal.Incarnation, uint64(x.name.id)
	terms.Lanes, terms.Overlap = 1, max(a.Overlap, int(x.proposal.Overlap))
	x.responder = p.newResponder()
	x.responder.Begin(terms)
	accept := wire.Accept{
		Codecs: p.world.codecs, Window: uint16(x.responder.Window()), Overlap: uint8(terms.Overlap), Lanes: 1,
		Steps: uint64(p.counts.Steps), Incarnation: p.incarnation,
	}
	x.bulk()
	err := x.say(uint64(x.name.id), accept)
	for told := false; err == nil && !told; {
		var frame []byte
		var more bool
		if frame, more, err = x.responder.Ranges(x.frame); more && err == nil {
			x.frame, err = frame, x.write(frame)
		}
		told = !more
	}
	if err != nil {
		x.breakOff(err)
	}
}

// refuse turns the partner down and ends the talk.
func (x *inbound) refuse(reason wire.Reason, detail string) {
	x.peer.counts.Declined++
	if err := x.say(uint64(x.name.id), wire.Refuse{Reason: reason, Detail: detail}); err != nil {
		x.breakOff(err)
		return
	}
	x.finish()
}

// acknowledged applies what the partner has, and ends the exchange if that is all.
func (x *inbound) acknowledged(h wire.Header) error {
	if err := x.responder.Lane(0).Ack(h); err != nil || !x.responder.Done() {
		return err
	}
	distance := x.responder.Distance()
	x.finish()
	x.release()
	delete(x.peer.running, x.name)
	x.peer.completed(x.talk, x.name, distance, 2*x.peer.values)
	return nil
}

func (x *inbound) closed() error { return io.ErrUnexpectedEOF }

func (x *inbound) abort() { x.breakOff(ErrAborted) }

// broken tells the partner if the fault is its own, and keeps what is in doubt.
func (x *inbound) broken(err error) {
	p := x.peer
	if reason, theirs := replica.Blame(err); theirs {
		// A stream that takes no more words is about to be reset anyway.
		_ = x.say(uint64(x.name.id), wire.Refuse{Reason: reason, Detail: err.Error()})
	}
	if x.responder == nil {
		p.broke(x.partner, err)
		return
	}
	x.release()
	p.failed(x.partner, x.name, err)
	p.settleLater()
}

// release ends the responder's exchange; what is in doubt is the ledger's now.
func (x *inbound) release() {
	p := x.peer
	if n := x.responder.End(p.now()); n > 0 {
		p.counts.InDoubt += n
		p.tellDoubt()
	}
	p.idleResponders = append(p.idleResponders, x.responder)
}

// newResponder returns one that is not in use.
func (p *peer) newResponder() *replica.Responder {
	if n := len(p.idleResponders); n > 0 {
		r := p.idleResponders[n-1]
		p.idleResponders = p.idleResponders[:n-1]
		return r
	}
	return replica.NewResponder(p.replica, p.ledger)
}
