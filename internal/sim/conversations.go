package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// conversations are the ones that a peer takes part in, and the repairs of those that broke off.
type conversations struct {
	peer     *peer
	host     session.Host          // the peer, as sessions see it
	all      []*conversation       // still open, the oldest first
	running  map[key]*conversation // those that the machine knows of
	watching time.Duration         // time of the next check for stalled partners; 0 for none
	settling bool                  // a question about slices in doubt is scheduled
}

// key names an exchange among all that a peer takes part in.
type key struct {
	partner topology.PeerID
	id      averaging.ExchangeID
	inbound bool
}

func newConversations(p *peer, m Member, traits collective.Traits) conversations {
	c := &p.world.config
	ways := links.New(links.Config{Lanes: 1, Stall: c.Stall, Deadline: c.Deadline})
	ways.SetPeriods(c.Quarantine, c.Quarantine)
	return conversations{peer: p, running: make(map[key]*conversation), host: session.Host{
		Run: run, Layout: m.Replica.Layout().Hash(), Cut: m.Replica.Cut(), Replica: m.Replica, Ledger: m.Ledger,
		Links: ways, Lanes: 1, Window: max(c.Pipeline.of(c.Terms)[m.Stage].Window, 1), Deadline: c.Deadline, Traits: traits, Peer: &p.conversations,
	}}
}

// Now implements session.Peer.
func (c *conversations) Now() session.State {
	return session.State{Incarnation: c.peer.incarnation, Steps: uint64(c.peer.counts.Steps), Progress: c.peer.trainer.Progress(), Ready: !c.peer.arriving}
}

// Member implements session.Peer.
func (c *conversations) Member(id topology.PeerID) bool {
	return c.peer.seen != nil && c.peer.seen.View().Has(id)
}

// Settle implements session.Peer.
func (c *conversations) Settle(partner topology.PeerID, exchange uint64, question wire.Status, answer wire.Settled) {
	applied, dropped, _ := c.host.Ledger.Settle(string(partner), exchange, question, answer)
	c.peer.counts.Applied += applied
	c.peer.counts.Dropped += dropped
	c.tellDoubt()
}

// Record implements session.Peer: views have no records here.
func (c *conversations) Record() []byte { return nil }

// Received implements session.Peer.
func (c *conversations) Received(topology.PeerID, wire.Record) error { return nil }

// propose opens an exchange.
func (c *conversations) propose(a averaging.Action) {
	x := takeOr(&c.peer.world.spare.exchanges)
	c.host.Ledger.Expire(c.peer.now())
	x.Begin(&c.host, c.peer.now(), a, c.peer.world.offers[c.peer.stage])
	if t := c.start(x, a); t != nil {
		t.drive()
	}
}

// give opens a transfer. It hands frames to the line only when the line is free, so that
// the transfer can be broken off before all is sent.
func (c *conversations) give(a collective.Action) {
	x := takeOr(&c.peer.world.spare.transfers)
	terms := replica.TransferTerms{Exchange: uint64(a.Exchange), Transfer: a.Transfer}
	offer := c.peer.world.exact
	if c.host.Traits.Gradients && !a.Exact {
		offer = c.peer.world.offers[c.peer.stage]
	}
	x.Begin(&c.host, c.peer.now(), a.Peer, terms, offer)
	if t := c.start(x, a.Action); t != nil {
		t.paced = true
		t.drive()
	}
}

// start opens a stream for a conversation that the machine has asked for.
func (c *conversations) start(s session.Conversation, a averaging.Action) *conversation {
	partner, name := c.peer.world.index[a.Peer], key{a.Peer, a.Exchange, false}
	t, ok := c.open(partner, s)
	if !ok {
		c.peer.world.queue.After(c.peer.world.line(c.peer.index, partner).link.Delay, func() { c.failed(partner, name, session.Result{Err: ErrUnreachable}) })
		return nil
	}
	t.name, c.running[name] = name, t
	c.watch()
	return t
}

// listen serves a stream on which the first bytes have arrived.
func (c *conversations) listen(e *end) {
	if e.fault != nil && e.read == len(e.inbox) {
		e.Reset() // opened and closed without a frame
		return
	}
	s := takeOr(&c.peer.world.spare.served)
	s.Begin(&c.host, c.peer.now(), c.peer.world.peers[e.other.peer].id)
	t := c.newConversation(e, s)
	c.watch()
	t.read()
}

// ask passes a partner's proposal to the machine.
func (c *conversations) ask(t *conversation) {
	s := t.session.(*session.Served)
	event := s.Event()
	name := key{event.Peer, event.Exchange, true}
	if c.running[name] != nil {
		s.Answer(c.peer.now(), averaging.Action{Kind: averaging.Refuse, Reason: averaging.Busy})
		return
	}
	t.name, c.running[name] = name, t
	c.peer.driver.report(event)
}

// agreed tells the machine that a partner has accepted.
func (c *conversations) agreed(t *conversation) {
	switch x := t.session.(type) {
	case *session.Exchange:
		c.peer.driver.report(x.Event())
	case *session.Transfer:
		c.peer.driver.report(x.Event())
	}
}

// conclude handles the end of a conversation.
func (c *conversations) conclude(t *conversation, r session.Result) {
	if c.running[t.name] == t {
		delete(c.running, t.name)
	}
	values, spare := 2*c.host.Replica.SharedLen(), &c.peer.world.spare
	switch x := t.session.(type) {
	case *session.Exchange:
		spare.exchanges.give(x)
	case *session.Transfer:
		values = x.Values()
		spare.transfers.give(x)
	case *session.Served:
		if x.Kind() == wire.TypeOffer && r.Outcome == session.Finished {
			values = x.Values()
		}
		spare.served.give(x)
	}
	if !t.name.inbound {
		c.peer.counts.Retransmitted += r.Retransmitted
	}
	if r.InDoubt > 0 {
		c.peer.counts.InDoubt += r.InDoubt
		c.tellDoubt()
	}
	if r.Quarantine > 0 && r.Outcome != session.Finished {
		c.quarantined(t, r)
	}
	switch r.Outcome {
	case session.Finished:
		c.completed(t, t.name, r.Distance, values)
		if r.Quarantine > 0 { // after the machine knows that this exchange completed
			c.quarantined(t, r)
		}
	case session.Failed:
		c.failed(t.partner, t.name, r)
	case session.Refused:
		c.refused(t, r)
	case session.Declined, session.Malformed:
		c.peer.counts.Declined++
	}
	if r.Err != nil && (r.Outcome == session.Nothing || r.Outcome == session.Malformed) {
		c.peer.broke(t.partner, r.Err)
	}
	c.settleLater()
}

// quarantined reports a partner that is kept away.
func (c *conversations) quarantined(t *conversation, r session.Result) {
	c.peer.counts.Quarantines++
	if hook := c.peer.world.config.Hooks.Quarantined; hook != nil {
		hook(c.peer.index, t.partner, r.Err)
	}
	c.peer.driver.tell(averaging.Event{Kind: averaging.Quarantined, Peer: c.peer.world.peers[t.partner].id, After: r.Quarantine})
}

// refused reports a proposal that the partner turned down.
func (c *conversations) refused(t *conversation, r session.Result) {
	c.peer.counts.Refused++
	event := averaging.Event{Kind: averaging.Refused, Peer: t.name.partner, Exchange: t.name.id, Reason: replica.RefusedFor(r.Reason)}
	if r.Reason == wire.ReasonVersion {
		event.Reason = averaging.Closing // a real peer learns by the hello which protocols the partner speaks
	}
	if event.Reason != averaging.Busy && event.Reason != averaging.Round {
		c.peer.broke(t.partner, r.Err)
	}
	c.peer.driver.tell(event)
}

// failed reports an exchange that broke off.
func (c *conversations) failed(partner int, name key, r session.Result) {
	delete(c.running, name)
	c.peer.counts.Failed++
	c.peer.broke(partner, fmt.Errorf("exchange %d with peer %d: %w", name.id, partner, r.Err))
	event := averaging.Event{Kind: averaging.Failed, Peer: name.partner, Exchange: name.id, Inbound: name.inbound, After: r.Waited}
	if own := (*session.OwnFault)(nil); errors.As(r.Err, &own) {
		event.Reason = averaging.Unfit
	}
	c.peer.driver.tell(event)
}

// settleLater makes the peer ask about slices in doubt, repeatedly until none is in doubt.
func (c *conversations) settleLater() {
	if c.settling || len(c.host.Ledger.Partners()) == 0 {
		return
	}
	c.settling = true
	c.peer.world.queue.After(c.peer.world.config.SettleAfter, func() {
		c.settling = false
		if c.peer.gone {
			return
		}
		c.host.Ledger.Expire(c.peer.now())
		c.tellDoubt()
		for _, partner := range c.host.Ledger.Partners() {
			if c.peer.world.overlays[c.peer.stage].View().Has(topology.PeerID(partner)) {
				c.inquire(c.peer.world.index[topology.PeerID(partner)])
			}
		}
		c.settleLater()
	})
}

// inquire asks one partner, unless a question to the partner is already open.
func (c *conversations) inquire(partner int) {
	for _, t := range c.all {
		if _, asking := t.session.(*session.Inquiry); asking && t.partner == partner {
			return
		}
	}
	q := &session.Inquiry{}
	q.Begin(&c.host, c.peer.now(), c.peer.world.peers[partner].id)
	if t, ok := c.open(partner, q); ok {
		c.watch()
		t.drive()
	}
}

// tellDoubt tells the machine how many exchanges are in doubt.
func (c *conversations) tellDoubt() {
	n := c.host.Ledger.Unresolved(func(string) bool { return true })
	c.peer.driver.tell(averaging.Event{Kind: averaging.Doubt, Unresolved: n})
}

// open opens a stream to another peer. It reports false if the link is cut.
func (c *conversations) open(partner int, s session.Conversation) (*conversation, bool) {
	w := c.peer.world
	l := w.line(c.peer.index, partner)
	if l.cut {
		return nil, false
	}
	stream := newStream(l, c.peer.index, partner)
	t := c.newConversation(&stream.ends[0], s)
	stream.ends[1].ready = func() {
		if p := w.peers[partner]; !p.gone {
			p.conversations.listen(&stream.ends[1])
		}
	}
	if opened := w.config.Hooks.Opened; opened != nil {
		opened(stream)
	}
	return t, true
}

// completed counts an exchange that is complete at this side, with the distance
// between the two models, or a transfer, with the number of values.
func (c *conversations) completed(t *conversation, name key, distance float64, values int) {
	bytes := t.end.written + t.end.other.written
	if name.inbound {
		c.peer.counts.Served++
	} else {
		c.peer.counts.Initiated++
		c.peer.counts.Moved += bytes
		c.peer.counts.Values += int64(values)
	}
	if hook := c.peer.world.config.Hooks.Finished; hook != nil {
		hook(c.peer.index, t.partner, name.inbound)
	}
	done := averaging.Event{
		Kind: averaging.Finished, Peer: name.partner, Exchange: name.id, Inbound: name.inbound,
		Distance: distance, Bytes: uint64(bytes),
	}
	rest := time.Duration(0)
	if ends := c.peer.world.config.Ends; ends != nil && !name.inbound {
		rest = ends(c.peer.index, c.peer.counts.Initiated+c.peer.counts.Served) - c.peer.now()
	}
	if rest <= 0 {
		c.peer.driver.tell(done)
		return
	}
	c.peer.world.queue.After(rest, func() {
		if !c.peer.gone {
			c.peer.driver.tell(done)
		}
	})
}

// newConversation starts a conversation in which the frames of a handshake may come.
func (c *conversations) newConversation(e *end, s session.Conversation) *conversation {
	t := &conversation{peer: c.peer, partner: e.other.peer, end: e, session: s, received: c.peer.now()}
	e.ready = t.read
	c.all = append(c.all, t)
	return t
}

// watch wakes the peer when the partner of one of its conversations has stalled.
func (c *conversations) watch() {
	if len(c.all) == 0 {
		return
	}
	first, _ := c.all[0].deadline()
	for _, t := range c.all[1:] {
		at, _ := t.deadline()
		first = min(first, at)
	}
	if c.watching > 0 && c.watching <= first || first == math.MaxInt64 {
		return
	}
	first = max(first, c.peer.now())
	c.watching = first
	c.peer.world.queue.After(first-c.peer.now(), func() {
		if c.watching != first || c.peer.gone {
			return
		}
		c.watching = 0
		for _, t := range slices.Clone(c.all) {
			if at, err := t.deadline(); c.peer.now() >= at && !t.over {
				t.breakOff(fmt.Errorf("waiting for peer %d: %w", t.partner, err))
			}
		}
		c.watch()
	})
}

// lose breaks off what runs with a peer that has gone.
func (c *conversations) lose(partner int) {
	for _, t := range slices.Clone(c.all) {
		if t.partner == partner {
			t.breakOff(fmt.Errorf("peer %d has gone: %w", partner, ErrUnreachable))
		}
	}
}

// vanish ends all conversations without a frame. The caller's end is applied to each stream.
func (c *conversations) vanish(end func(*Stream)) {
	for _, t := range c.all {
		t.over, t.end.deaf = true, true
		end(t.end.stream)
	}
	c.all = nil
	clear(c.running)
}
