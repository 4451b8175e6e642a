package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// run is the name of every world's run.
const run = "simulation"

// newLocal is what the conversations of a peer know of it.
func (p *peer) newLocal() session.Host {
	c := &p.world.config
	ways := links.New(links.Config{Lanes: 1, Stall: c.Stall, Deadline: c.Deadline})
	ways.SetTerms(c.Quarantine, c.Quarantine)
	return session.Host{
		Run: run, Layout: p.replica.Layout().Hash(), Cut: p.replica.Cut(), Replica: p.replica, Ledger: p.ledger,
		Links: ways, Lanes: 1, Window: max(c.Terms.Window, 1), Deadline: c.Deadline, Traits: p.traits, Peer: p,
	}
}

// Now implements session.Peer.
func (p *peer) Now() session.State {
	return session.State{Incarnation: p.incarnation, Steps: uint64(p.counts.Steps), Ready: !p.arriving}
}

// Member implements session.Peer.
func (p *peer) Member(id topology.PeerID) bool {
	if p.seen == nil {
		return false
	}
	_, member := p.seen.View().Lookup(id)
	return member
}

// Settle implements session.Peer.
func (p *peer) Settle(partner topology.PeerID, exchange uint64, question wire.Status, answer wire.Settled) {
	applied, dropped, _ := p.ledger.Settle(string(partner), exchange, question, answer)
	p.counts.Applied += applied
	p.counts.Dropped += dropped
	p.tellDoubt()
}

// Record implements session.Peer: views have no records here.
func (p *peer) Record() []byte { return nil }

// Heard implements session.Peer.
func (p *peer) Heard(topology.PeerID, wire.Record) error { return nil }

// propose opens an exchange.
func (p *peer) propose(a averaging.Action) {
	x := take(&p.idleExchanges, func() *session.Exchange { return session.NewExchange(p.replica, p.ledger) })
	p.ledger.Expire(p.now())
	x.Begin(&p.local, p.now(), a.Peer, a.Exchange, a.Overlap, p.world.offer)
	if t := p.start(x, a); t != nil {
		t.drive()
	}
}

// give opens a transfer. Its frames are handed to the line as it becomes free, so that what
// is not yet sent can still be broken off.
func (p *peer) give(a collective.Action) {
	x := take(&p.idleTransfers, func() *session.Transfer { return session.NewTransfer(p.replica) })
	terms := replica.TransferTerms{Exchange: uint64(a.Exchange), Transfer: a.Transfer}
	offer := p.world.exact
	if p.traits.Gradients && !a.Exact {
		offer = p.world.offer
	}
	x.Begin(&p.local, p.now(), a.Peer, terms, offer)
	if t := p.start(x, a.Action); t != nil {
		t.paced = true
		t.enlarge()
		t.drive()
	}
}

// start opens a stream for a conversation that the machine has asked for.
func (p *peer) start(c session.Conversation, a averaging.Action) *talk {
	partner, name := p.world.index[a.Peer], key{a.Peer, a.Exchange, false}
	t, ok := p.open(partner, c)
	if !ok {
		p.world.queue.After(p.world.line(p.index, partner).link.Delay, func() { p.failed(partner, name, ErrUnreachable) })
		return nil
	}
	t.name, p.running[name] = name, t
	p.watch()
	return t
}

// listen takes part in a stream on which something has come.
func (p *peer) listen(e *end) {
	if e.fault != nil && e.read == len(e.inbox) {
		e.Reset() // opened and closed without a word
		return
	}
	s := take(&p.idleServed, func() *session.Served { return &session.Served{} })
	s.Begin(&p.local, p.now(), p.world.peers[e.other.peer].id)
	t := p.newTalk(e, s)
	p.watch()
	t.read()
}

// ask puts to the machine what a partner wants.
func (p *peer) ask(t *talk) {
	s := t.session.(*session.Served)
	event := s.Event()
	name := key{event.Peer, event.Exchange, true}
	if p.running[name] != nil {
		s.Answer(p.now(), averaging.Action{Kind: averaging.Refuse, Reason: averaging.Busy})
		return
	}
	t.name, p.running[name] = name, t
	p.report(event)
}

// answer carries out what the machine says to a partner's wish.
func (t *talk) answer(a averaging.Action) {
	if s, ok := t.session.(*session.Served); ok {
		s.Answer(t.peer.now(), a)
		t.drive()
	}
}

// agreed tells the machine that a partner has accepted.
func (p *peer) agreed(t *talk) {
	switch x := t.session.(type) {
	case *session.Exchange:
		p.report(x.Event())
	case *session.Transfer:
		p.report(x.Event())
	}
}

// conclude takes the end of a conversation.
func (p *peer) conclude(t *talk, r session.Result) {
	if p.running[t.name] == t {
		delete(p.running, t.name)
	}
	values := 2 * p.values
	switch x := t.session.(type) {
	case *session.Exchange:
		p.idleExchanges = append(p.idleExchanges, x)
	case *session.Transfer:
		values = x.Values()
		p.idleTransfers = append(p.idleTransfers, x)
	case *session.Served:
		if x.Kind() == wire.TypeOffer && r.Outcome == session.Finished {
			values = x.Values()
		}
		p.idleServed = append(p.idleServed, x)
	}
	if !t.name.inbound {
		p.counts.Again += r.Again
	}
	if r.InDoubt > 0 {
		p.counts.InDoubt += r.InDoubt
		p.tellDoubt()
	}
	if r.Quarantine > 0 {
		p.counts.Quarantines++
		p.tell(averaging.Event{Kind: averaging.Quarantined, Peer: p.world.peers[t.partner].id, After: r.Quarantine})
	}
	switch r.Outcome {
	case session.Finished:
		p.completed(t, t.name, r.Distance, values)
	case session.Failed:
		p.failed(t.partner, t.name, r.Err)
	case session.Refused:
		p.refused(t, r)
	case session.Declined, session.Malformed:
		p.counts.Declined++
	}
	if r.Err != nil && (r.Outcome == session.Nothing || r.Outcome == session.Malformed) {
		p.broke(t.partner, r.Err)
	}
	p.settleLater()
}

// refused reports a proposal that the partner turned down.
func (p *peer) refused(t *talk, r session.Result) {
	p.counts.Refused++
	event := averaging.Event{Kind: averaging.Refused, Peer: t.name.partner, Exchange: t.name.id, Reason: replica.RefusedFor(r.Reason)}
	if r.Reason == wire.ReasonVersion {
		event.Reason = averaging.Closing // a real peer finds out by a hello that the partner speaks as it does
	}
	if event.Reason != averaging.Busy && event.Reason != averaging.Round {
		p.broke(t.partner, r.Err)
	}
	p.tell(event)
}

// failed reports an exchange that broke off.
func (p *peer) failed(partner int, name key, err error) {
	delete(p.running, name)
	p.counts.Failed++
	p.broke(partner, fmt.Errorf("exchange %d with peer %d: %w", name.id, partner, err))
	event := averaging.Event{Kind: averaging.Failed, Peer: name.partner, Exchange: name.id, Inbound: name.inbound}
	if own := (*session.OwnFault)(nil); errors.As(err, &own) {
		event.Reason = averaging.Unfit
	}
	p.tell(event)
}

// settleLater lets the peer ask about what is in doubt, again and again until nothing is.
func (p *peer) settleLater() {
	if p.settling || len(p.ledger.Partners()) == 0 {
		return
	}
	p.settling = true
	p.world.queue.After(p.world.config.SettleAfter, func() {
		p.settling = false
		if p.gone {
			return
		}
		p.ledger.Expire(p.now())
		p.tellDoubt()
		for _, partner := range p.ledger.Partners() {
			if _, member := p.world.overlay.View().Lookup(topology.PeerID(partner)); member {
				p.inquire(p.world.index[topology.PeerID(partner)])
			}
		}
		p.settleLater()
	})
}

// inquire asks one partner, unless it is being asked.
func (p *peer) inquire(partner int) {
	for _, t := range p.talks {
		if _, asking := t.session.(*session.Inquiry); asking && t.partner == partner {
			return
		}
	}
	q := &session.Inquiry{}
	q.Begin(&p.local, p.now(), p.world.peers[partner].id)
	if t, ok := p.open(partner, q); ok {
		p.watch()
		t.drive()
	}
}

// tellDoubt tells the machine how many exchanges are in doubt.
func (p *peer) tellDoubt() {
	n := p.ledger.Unresolved(func(string) bool { return true })
	p.tell(averaging.Event{Kind: averaging.Doubt, Unresolved: n})
}

// take takes one that is not in use, or makes one.
func take[T any](idle *[]T, build func() T) (one T) {
	if n := len(*idle); n > 0 {
		one, *idle = (*idle)[n-1], (*idle)[:n-1]
		return one
	}
	return build()
}

func (p *peer) now() time.Duration { return p.world.queue.Now() }
