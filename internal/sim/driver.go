package sim

import (
	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// driver passes events to a peer's machine, one after the other, and carries out its answers.
type driver struct {
	peer    *peer
	machine collective.Machine
	timers  [collective.TimerKinds]timer

	events   []collective.Event // waiting while the machine handles another
	handling bool
	actions  []collective.Action // scratch
}

// tell passes an event of an exchange to the machine.
func (d *driver) tell(event averaging.Event) { d.report(collective.Event{Event: event}) }

// report passes an event to the machine and carries out its answer. Events that
// happen meanwhile wait for their turn.
func (d *driver) report(event collective.Event) {
	if d.peer.gone {
		return
	}
	d.events = append(d.events, event)
	if d.handling {
		return
	}
	d.handling = true
	for len(d.events) > 0 && !d.peer.gone {
		next := d.events[0]
		d.events = d.events[:copy(d.events, d.events[1:])]
		d.actions = d.machine.Decide(d.peer.world.queue.Now(), next, d.actions[:0])
		answered := false
		for _, action := range d.actions {
			d.proposed(action)
		}
		for _, action := range d.actions {
			answered = answered || answers(action.Action, next.Event)
			d.peer.carryOut(action)
		}
		if asks := next.Kind == averaging.Proposed || next.Kind == collective.Offered; asks && !answered {
			d.peer.carryOut(collective.Action{Action: averaging.Action{Kind: averaging.Refuse, Peer: next.Peer, Exchange: next.Exchange, Inbound: true, Reason: averaging.Round}})
		}
	}
	d.handling = false
}

// proposed calls the world's hook for an exchange or a transfer that is asked for.
func (d *driver) proposed(a collective.Action) {
	if hook := d.peer.world.config.Hooks.Proposed; hook != nil && (a.Kind == averaging.Propose || a.Kind == collective.Send) {
		hook(d.peer.index, a.Peer)
	}
}

// answers tells whether an action is the answer to what an event asks.
func answers(a averaging.Action, e averaging.Event) bool {
	return (a.Kind == averaging.Accept || a.Kind == averaging.Refuse) && a.Peer == e.Peer && a.Exchange == e.Exchange
}

// timer is the machine's last request of one kind to be called later.
type timer struct {
	order    uint64 // in the queue; replaced timers stay there until they are due
	fire     func() // one function for all timers, since timers far outlive their exchanges
	peer     topology.PeerID
	exchange averaging.ExchangeID
}

// setTimer replaces the timer of the same kind.
func (d *driver) setTimer(a averaging.Action) {
	t, q := &d.timers[a.Timer], &d.peer.world.queue
	if t.fire == nil {
		kind := a.Timer
		t.fire = func() {
			if t.order == q.doing {
				d.tell(averaging.Event{Kind: averaging.TimerFired, Timer: kind, Peer: t.peer, Exchange: t.exchange})
			}
		}
	}
	t.peer, t.exchange, t.order = a.Peer, a.Exchange, q.After(a.After, t.fire)
}
