package sim

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/topology"
)

// peer carries out what its machine decides.
type peer struct {
	world   *World
	index   int
	id      topology.PeerID
	machine averaging.Machine
	replica *replica.Replica
	ledger  *replica.Ledger
	counts  Counts
	copied  bool // it began with a copy of another's model

	incarnation uint64
	arriving    bool // copies a model: it is no member yet
	gone        bool // does nothing: it has left, crashed or never come
	missed      bool // the others know that it has gone
	seen        *topology.Overlay

	events   []averaging.Event // waiting for the machine while it handles another
	handling bool

	unreachable bool // of Member

	actions []averaging.Action // scratch
	timers  [averaging.TimerKinds]uint64
	running map[key]exchange

	talks    []*talk // not over, the oldest first
	watching bool
	settling bool

	// What is used again; as much as the machine lets run at once.
	idleInitiators []*replica.Initiator
	idleResponders []*replica.Responder
	idleSenders    []*replica.Sender
	idleReceivers  []*replica.Receiver

	stepping        bool
	snapshot, delta []float32            // delta is the gradient, with a GradientTrainer
	values          int                  // that are exchanged
	samples         int                  // of the gradient
	computed        bool                 // the gradient of the step in the making is there
	sizer           averaging.BatchSizer // the machine, if it is one
	averages        bool                 // the machine is a GradientMachine
	pools           bool                 // the machine is a PoolingMachine
	waiting         bool                 // a gradient awaits the machine's Proceed
	halted          bool                 // no further step is made
}

// key names an exchange among all that a peer takes part in.
type key struct {
	partner topology.PeerID
	id      averaging.ExchangeID
	inbound bool
}

// exchange is one that the machine knows of, and may break off.
type exchange interface{ abort() }

// answerer is one that awaits what the machine says to it.
type answerer interface{ answer(averaging.Action) }

func newPeer(w *World, index int, m Member) (*peer, error) {
	averages, err := w.prepare(m)
	if err != nil {
		return nil, err
	}
	sizer, _ := m.Machine.(averaging.BatchSizer)
	_, pools := m.Machine.(averaging.PoolingMachine)
	if pools {
		m.Replica.UseGradients() // it may be given a sum before it has one
	}
	return &peer{
		world: w, index: index, id: m.ID, unreachable: m.Unreachable,
		machine: m.Machine, replica: m.Replica, ledger: m.Ledger, incarnation: 1,
		running:  make(map[key]exchange),
		snapshot: make([]float32, m.Replica.Len()), delta: make([]float32, m.Replica.Len()),
		values: m.Replica.SharedLen(), averages: averages, pools: pools, sizer: sizer,
	}, nil
}

// begin shows the peer its flock and lets it train.
func (p *peer) begin() {
	p.look()
	p.step()
}

// tell gives an event to the machine and carries out its answer. Events that come
// up meanwhile are handled in their turn.
func (p *peer) tell(event averaging.Event) {
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
		p.actions = p.machine.Handle(p.world.queue.Now(), next, p.actions[:0])
		answered := false
		for _, action := range p.actions {
			answered = answered || answers(action, next)
			p.carryOut(action)
		}
		if asks := next.Kind == averaging.Proposed || next.Kind == averaging.Offered; asks && !answered {
			p.carryOut(averaging.Action{Kind: averaging.Refuse, Peer: next.Peer, Exchange: next.Exchange, Inbound: true, Reason: averaging.Round})
		}
	}
	p.handling = false
}

// answers tells whether an action is the answer to what an event asks.
func answers(a averaging.Action, e averaging.Event) bool {
	return (a.Kind == averaging.Accept || a.Kind == averaging.Refuse) && a.Peer == e.Peer && a.Exchange == e.Exchange
}

func (p *peer) carryOut(a averaging.Action) {
	switch a.Kind {
	case averaging.Proceed:
		p.proceed()
	case averaging.Propose:
		p.propose(a)
	case averaging.Accept, averaging.Refuse:
		if x, ok := p.running[key{a.Peer, a.Exchange, true}].(answerer); ok {
			x.answer(a)
		}
	case averaging.Abort:
		if x := p.running[key{a.Peer, a.Exchange, a.Inbound}]; x != nil {
			x.abort()
		}
	case averaging.SetTimer:
		p.setTimer(a)
	case averaging.Send:
		p.give(a)
	case averaging.Load:
		if err := p.replica.Load(a.Add); err != nil {
			p.broke(p.index, fmt.Errorf("step %d: the gradient is left out: %w", p.counts.Steps, err))
		}
	case averaging.Clear:
		p.replica.Clear()
	case averaging.Update:
		p.update(a)
	case averaging.Pool:
		p.replica.UseGradients()
		p.replica.Pool(a.Weight)
	case averaging.Adopt:
		p.replica.Adopt()
		p.counts.Updates++
		p.tell(averaging.Event{Kind: averaging.Updated})
	case averaging.Tell:
		p.word(a)
	case averaging.Halt:
		p.halt(a)
	}
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
func (p *peer) open(partner int) (*talk, bool) {
	w := p.world
	l := w.line(p.index, partner)
	if l.cut {
		return nil, false
	}
	s := newStream(l, p.index, partner)
	t := p.newTalk(&s.ends[0])
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

func (p *peer) now() time.Duration { return p.world.queue.Now() }
