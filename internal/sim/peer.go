package sim

import (
	"bytes"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// peer carries out what its machine decides.
type peer struct {
	world   *World
	index   int
	id      topology.PeerID
	machine collective.Machine
	replica *replica.Replica
	ledger  *replica.Ledger
	local   session.Host // what conversations know of the peer
	counts  Counts
	copied  bool // it began with a copy of another's model

	incarnation uint64
	arriving    bool // copies a model: it is no member yet
	gone        bool // does nothing: it has left, crashed or never come
	missed      bool // the others know that it has gone
	seen        *topology.Overlay

	events   []collective.Event // waiting for the machine while it handles another
	handling bool

	unreachable bool // of Member

	actions []collective.Action // scratch
	timers  [collective.TimerKinds]uint64
	running map[key]*talk

	talks    []*talk       // not over, the oldest first
	watching time.Duration // when the peer looks for partners that have stalled; 0 if it does not
	settling bool

	// What is used again; as much as the machine lets run at once.
	idleExchanges []*session.Exchange
	idleTransfers []*session.Transfer
	idleServed    []*session.Served

	trainer training
	traits  collective.Traits // of the machine
	values  int               // that are exchanged
}

// key names an exchange among all that a peer takes part in.
type key struct {
	partner topology.PeerID
	id      averaging.ExchangeID
	inbound bool
}

func newPeer(w *World, index int, m Member) *peer {
	machine := collective.Of(m.Machine)
	p := &peer{
		world: w, index: index, id: m.ID, unreachable: m.Unreachable,
		machine: machine, traits: machine.Traits(), replica: m.Replica, ledger: m.Ledger, incarnation: 1,
		running: make(map[key]*talk), values: m.Replica.SharedLen(),
	}
	p.trainer = training{peer: p, gradients: p.traits.Gradients}
	p.trainer.Trainer = trainer.New(trainer.Config{
		Replica: m.Replica, Optimizer: m.Optimizer, Traits: p.traits, Pace: w.config.Pace, Run: &p.trainer,
	})
	p.local = p.newLocal()
	return p
}

// begin shows the peer its flock and lets it train.
func (p *peer) begin() {
	if p.gone {
		return // it has yet to come
	}
	p.look()
	p.trainer.begin(0)
}

// tell gives an event of an exchange to the machine.
func (p *peer) tell(event averaging.Event) { p.report(collective.Event{Event: event}) }

// report gives an event to the machine and carries out its answer. Events that come
// up meanwhile are handled in their turn.
func (p *peer) report(event collective.Event) {
	if p.gone {
		return
	}
	p.events = append(p.events, event)
	if p.handling {
		return
	}
	p.handling = true
	for len(p.events) > 0 {
		next := p.events[0]
		p.events = p.events[:copy(p.events, p.events[1:])]
		p.actions = p.machine.Decide(p.world.queue.Now(), next, p.actions[:0])
		answered := false
		for _, action := range p.actions {
			p.proposed(action)
		}
		for _, action := range p.actions {
			answered = answered || answers(action.Action, next.Event)
			p.carryOut(action)
		}
		if asks := next.Kind == averaging.Proposed || next.Kind == collective.Offered; asks && !answered {
			p.carryOut(collective.Action{Action: averaging.Action{Kind: averaging.Refuse, Peer: next.Peer, Exchange: next.Exchange, Inbound: true, Reason: averaging.Round}})
		}
	}
	p.handling = false
}

// proposed lets the caller know of an exchange or a transfer that is asked for.
func (p *peer) proposed(a collective.Action) {
	if hook := p.world.config.Hooks.Proposed; hook != nil && (a.Kind == averaging.Propose || a.Kind == collective.Send) {
		hook(p.index, a.Peer)
	}
}

// answers tells whether an action is the answer to what an event asks.
func answers(a averaging.Action, e averaging.Event) bool {
	return (a.Kind == averaging.Accept || a.Kind == averaging.Refuse) && a.Peer == e.Peer && a.Exchange == e.Exchange
}

func (p *peer) carryOut(a collective.Action) {
	switch a.Kind {
	case averaging.Proceed:
		p.trainer.proceed(a.Batch)
	case averaging.Propose:
		p.propose(a.Action)
	case averaging.Accept, averaging.Refuse:
		if t := p.running[key{a.Peer, a.Exchange, true}]; t != nil {
			t.answer(a.Action)
		}
	case averaging.Abort:
		if t := p.running[key{a.Peer, a.Exchange, a.Inbound}]; t != nil {
			t.breakOff(session.ErrAborted)
		}
	case averaging.SetTimer:
		p.setTimer(a.Action)
	case collective.Send:
		p.give(a)
	case collective.Load:
		if err := p.replica.Load(a.Add); err != nil {
			p.broke(p.index, fmt.Errorf("step %d: the gradient is left out: %w", p.counts.Steps, err))
		}
	case collective.Clear:
		p.replica.Clear()
	case collective.Update:
		p.trainer.update(a)
		p.updated()
	case collective.Pool:
		p.replica.Pool(a.Weight)
	case collective.Adopt:
		p.replica.Adopt()
		p.updated()
	case collective.Tell:
		p.word(a)
	case averaging.Halt:
		p.trainer.halted = true
		p.broke(p.index, fmt.Errorf("%s: %w", a.Reason, errHalted))
	}
}

// updated tells the machine that the parameters are as it has asked for.
func (p *peer) updated() {
	p.counts.Updates++
	p.tell(averaging.Event{Kind: collective.Updated})
}

// setTimer replaces the timer of the same kind.
func (p *peer) setTimer(a averaging.Action) {
	p.timers[a.Timer]++
	serial := p.timers[a.Timer]
	p.world.queue.After(a.After, func() {
		if p.timers[a.Timer] == serial {
			p.tell(averaging.Event{Kind: averaging.TimerFired, Timer: a.Timer, Peer: a.Peer, Exchange: a.Exchange})
		}
	})
}

// open opens a stream to another peer. It reports false if the link is cut.
func (p *peer) open(partner int, c session.Conversation) (*talk, bool) {
	w := p.world
	l := w.line(p.index, partner)
	if l.cut {
		return nil, false
	}
	s := newStream(l, p.index, partner)
	t := p.newTalk(&s.ends[0], c)
	s.ends[1].ready = func() {
		if p := w.peers[partner]; !p.gone {
			p.listen(&s.ends[1])
		}
	}
	if opened := w.config.Hooks.Opened; opened != nil {
		opened(s)
	}
	return t, true
}

// broke lets the caller know what went wrong with a partner.
func (p *peer) broke(partner int, err error) {
	if hook := p.world.config.Hooks.Broke; hook != nil {
		hook(p.index, partner, err)
	}
}

// completed counts an exchange that is complete at this side, of two models that were
// so far apart, or a transfer, in which so many values went one way or the other.
func (p *peer) completed(t *talk, name key, distance float64, values int) {
	bytes := t.end.written + t.end.other.written
	if name.inbound {
		p.counts.Served++
	} else {
		p.counts.Initiated++
		p.counts.Moved += bytes
		p.counts.Values += int64(values)
	}
	if hook := p.world.config.Hooks.Finished; hook != nil {
		hook(p.index, t.partner, name.inbound)
	}
	p.tell(averaging.Event{
		Kind: averaging.Finished, Peer: name.partner, Exchange: name.id, Inbound: name.inbound,
		Distance: distance, Bytes: uint64(bytes),
	})
}

// look shows the peer the view, unless it has seen it or is no member of it.
func (p *peer) look() {
	overlay := p.world.overlay
	if p.gone || p.seen == overlay {
		return
	}
	if _, member := overlay.View().Lookup(p.id); !member {
		return
	}
	p.seen = overlay
	p.tell(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
}

// vanish ends all that the peer does. End says what becomes of its streams.
func (p *peer) vanish(end func(*Stream)) {
	p.gone = true
	for _, t := range p.talks {
		t.over, t.end.deaf = true, true
		end(t.end.stream)
	}
	p.talks, p.events = nil, nil
	clear(p.running)
}

// loseTouch breaks off what runs with a peer that has gone.
func (p *peer) loseTouch(gone *peer) {
	if p.gone {
		return
	}
	for _, t := range append([]*talk(nil), p.talks...) {
		if t.partner == gone.index {
			t.breakOff(fmt.Errorf("peer %d has gone: %w", gone.index, ErrUnreachable))
		}
	}
	p.tell(averaging.Event{Kind: averaging.PeerLost, Peer: gone.id})
}

// absent is a member that has yet to come: it holds its place among the peers.
func absent(w *World, index int, id topology.PeerID) *peer {
	return &peer{world: w, index: index, id: id, gone: true, missed: true}
}

// word sends what the machine tells another: a frame of its own on the line, which is
// lost if the line is cut before it arrives, and may overtake what streams carry where
// segments of these must be sent again.
func (p *peer) word(a collective.Action) {
	w := p.world
	partner := w.index[a.Peer]
	l := w.line(p.index, partner)
	if l.cut {
		return
	}
	frame, err := wire.Pack(nil, 0, wire.Tell(a.Word))
	if err != nil {
		p.broke(partner, fmt.Errorf("telling peer %d %s: %w", partner, a.Word, err))
		return
	}
	p.counts.Sent += int64(len(frame))
	p.counts.Told++
	l.arrive(l.carry(wayOf(p.index, partner), len(frame)), func() {
		if !l.cut {
			w.peers[partner].told(p, frame)
		}
	})
}

// told takes a word in.
func (p *peer) told(from *peer, frame []byte) {
	if p.gone {
		return
	}
	h, payload, err := wire.NewReader(bytes.NewReader(frame), wire.MaxHandshake).Next()
	var word collective.Word
	var heard bool
	if err == nil {
		word, heard, err = session.Word(&p.local, p.now(), from.id, h, payload)
	}
	switch {
	case err != nil:
		p.broke(from.index, fmt.Errorf("a word of peer %d: %w", from.index, err))
	case heard:
		p.report(collective.Event{Event: averaging.Event{Kind: collective.Told, Peer: from.id}, Word: word})
	}
}
