package collective_test

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// carryOut does what a peer's part asks for.
func (p *peer) carryOut(a collective.Action) {
	w := p.world
	switch a.Kind {
	case averaging.SetTimer:
		w.queue.After(a.After, func() {
			p.does(func() {
				if p.again = p.Ticked(collective.Event{Event: averaging.Event{Timer: a.Timer, Exchange: a.Exchange}}); p.again {
					p.Tick()
				}
			})
			p.again = false
		})
	case collective.Pool:
		p.load()
	case collective.Adopt:
		p.ended(end{sum: p.sum})
	case collective.Note:
		w.show("%s notes of %q: %s: %s %s", p.id, a.Fact.Sum, a.Fact.What, a.Fact.Who, a.Fact.Why)
	case collective.Tell:
		p.tell(a)
	case collective.Send:
		p.send(a)
	case averaging.Accept, averaging.Refuse:
		p.answer(a)
	case averaging.Abort:
		p.abort(a)
	default:
		w.t.Fatalf("%s is to %s", p.id, a)
	}
}

// load puts this peer's part into the sum, which nothing else may change meanwhile.
func (p *peer) load() {
	p.world.show("%s loads its part", p.id)
	for _, x := range p.taking {
		p.world.t.Fatalf("%s loads while %s of %s may still change the sum", p.id, x.Transfer, x.from.id)
	}
	for i := range p.sum {
		p.sum[i] = p.brings
	}
}

// tell has a word arrive, or not.
func (p *peer) tell(a collective.Action) {
	w, to := p.world, p.world.peer(a.Peer)
	if heard := a.Message.Kind == collective.MessageAck; !heard && !(p.again && a.Message.Sum != nil && a.Message.Sum.Kind == wire.SumStatus) {
		w.show("%s tells %s: %s", p.id, to.id, described(a.Message))
	}
	if w.rand.Float64() < w.loss || w.drops(p, a) {
		return
	}
	from := p.id
	w.queue.After(w.delay()+w.slow[[2]topology.PeerID{from, to.id}], func() {
		to.does(func() {
			if to.members.Has(from) {
				to.members.Spoke(from, to.Now)
				if !to.Receive(from, a.Message) && a.Message.Kind != collective.MessageAck {
					w.t.Fatalf("%s is told by %s: %s", to.id, from, a.Message)
				}
			}
		})
	})
}

// send offers a transfer.
func (p *peer) send(a collective.Action) {
	w := p.world
	x := &transfer{Transfer: a.Transfer, id: a.Exchange, from: p, to: w.peer(a.Peer)}
	w.show("%s sends %s: %s", p.id, a.Peer, partOf(x.Transfer))
	if x.Round < p.attempt {
		w.t.Fatalf("%s sends for attempt %d, after %d", p.id, x.Round>>16, p.attempt>>16)
	}
	p.attempt, p.sending[x.id] = x.Round, x
	if w.drops(p, a) {
		return
	}
	w.queue.After(w.delay(), func() {
		switch {
		case x.to.frozen:
		case x.cut || x.to.gone || p.gone:
			x.ends(false)
		default:
			x.to.taking[x.key()] = x
			x.to.does(func() { x.to.Offered(x.event(collective.Offered, true)) })
		}
	})
}

func (x *transfer) key() key { return key{x.from.id, x.id} }

// event is one of the transfer, at the receiver's side or the sender's.
func (x *transfer) event(kind averaging.EventKind, inbound bool) collective.Event {
	peer := x.to.id
	if inbound {
		peer = x.from.id
	}
	return collective.Event{Transfer: x.Transfer, Event: averaging.Event{Kind: kind, Peer: peer, Exchange: x.id, Inbound: inbound}}
}

// answer has the sender hear that its offer is taken, or not.
func (p *peer) answer(a collective.Action) {
	w, x := p.world, p.taking[key{a.Peer, a.Exchange}]
	if x == nil {
		w.t.Fatalf("%s answers what was not offered: %s", p.id, a)
	}
	if a.Kind == averaging.Refuse {
		w.show("%s refuses part %d of %s: %s", p.id, x.Part, x.from.id, a.Reason)
		x.over = true
		delete(p.taking, x.key())
		w.queue.After(w.delay()+w.refuse, func() {
			refused := x.event(averaging.Refused, false)
			refused.Reason = a.Reason
			x.lands(refused)
		})
		return
	}
	w.queue.After(w.delay(), func() {
		x.from.does(func() { x.from.Accepted(x.event(averaging.Accepted, false)) })
		x.carry(x.Part * width / x.Parts)
	})
}

// carry moves the values of a transfer, one after the other.
func (x *transfer) carry(i int) {
	w := x.from.world
	switch {
	case x.over:
	case !x.cut && (x.from.frozen || x.to.frozen):
	case x.cut || x.from.gone || x.to.gone || x.from.unfit || w.rand.Float64() < w.breaks:
		x.ends(false)
	case i == (x.Part+1)*width/x.Parts:
		x.ends(true)
	default:
		if x.Add {
			x.to.sum[i] += x.from.sum[i]
		} else {
			x.to.sum[i] = x.from.sum[i]
		}
		w.queue.After(w.delay()/width, func() { x.carry(i + 1) })
	}
}

// ends tells both sides of the end, each at its own time. The sender may not hear that all has arrived.
func (x *transfer) ends(well bool) {
	w := x.from.world
	if x.over {
		return
	}
	x.over = true
	kinds := map[bool]averaging.EventKind{true: averaging.Finished, false: averaging.Failed}
	given := x.event(kinds[well && w.rand.Float64() >= w.breaks], false)
	if !well && x.from.unfit {
		given.Reason = averaging.Unfit
	}
	if x.to.taking[x.key()] != x {
		w.queue.After(w.delay(), func() { x.lands(given) })
		return
	}
	w.queue.After(w.delay()/2, func() {
		delete(x.to.taking, x.key())
		w.show("%s %s part %d of %s", x.to.id, map[bool]string{true: "has", false: "has lost"}[well], x.Part, x.from.id)
		x.landed(x.to, x.event(kinds[well], true))
		w.queue.After(w.delay()/2, func() { x.lands(given) })
	})
}

// lands tells the sender, unless it has given the transfer up.
func (x *transfer) lands(e collective.Event) {
	if x.from.sending[x.id] == x {
		delete(x.from.sending, x.id)
		x.landed(x.from, e)
	}
}

// landed tells one side of the end, of which there is nothing left for the owner to do.
func (x *transfer) landed(at *peer, e collective.Event) {
	at.does(func() {
		if _, owners := at.Landing(e); owners {
			at.world.t.Fatalf("%s holds %s to be its owner's", at.id, x.Transfer)
		}
	})
}

// abort breaks a transfer off: a sender at once, a receiver once the sender hears of it.
func (p *peer) abort(a collective.Action) {
	w, x := p.world, p.sending[a.Exchange]
	after := time.Duration(0)
	if a.Inbound {
		x, after = p.taking[key{a.Peer, a.Exchange}], w.delay()+w.upTo(w.stops)
	} else {
		delete(p.sending, a.Exchange)
	}
	if x == nil {
		w.t.Fatalf("%s aborts what there is not: %s", p.id, a)
	}
	w.show("%s breaks off part %d %s %s", p.id, x.Part, map[bool]string{true: "of", false: "to"}[a.Inbound], a.Peer)
	w.queue.After(after, func() {
		x.cut = true
		if x.to.taking[x.key()] == x {
			w.queue.After(w.delay(), func() { x.ends(false) })
		}
	})
}
