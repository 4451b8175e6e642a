package averaging

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// MaxOverlap bounds the exchanges that may change a peer's model at once; a
	// passive refuses the next. Those that begin while the others run weigh 1/2,
	// 1/3, 1/4 and so on. Even if all are computed from the same models, six bring
	// these nearer to each other; seven may drive them apart.
	MaxOverlap = 6
	// maxUnresolved bounds the exchanges in doubt with which a passive still serves
	// further ones.
	maxUnresolved = 2
)

// inbound holds the exchanges that others have initiated, the oldest first. One that is
// broken off stays in the list, not running, until its end is reported. Its slices may not
// yet have been counted as in doubt. And an initiator that has restarted counts its
// exchanges from 1 again, so the end of the old exchange could be taken for that of a new
// one with the same id.
type inbound struct {
	held  []exchange // at most MaxOverlap, of different peers or ids
	armed exchange   // the one that the timer was last set for, if it has not fired
}

// begin adds an exchange.
func (in *inbound) begin(now time.Duration, e Event) {
	in.held = append(in.held, exchange{id: e.Exchange, peer: e.Peer, began: now, running: true})
}

// end removes an exchange that is over, and returns when it began. ok is false if there is
// no such exchange.
func (in *inbound) end(e Event) (began time.Duration, ok bool) {
	for i, x := range in.held {
		if x.id == e.Exchange && x.peer == e.Peer {
			in.held = slices.Delete(in.held, i, i+1)
			return x.began, true
		}
	}
	return 0, false
}

// running counts the exchanges that are not broken off.
func (in *inbound) running() (n int) {
	for _, x := range in.held {
		if x.running {
			n++
		}
	}
	return n
}

// clashes tells whether a proposal names an exchange that is not over, or comes from a peer
// that is being served. An initiator has one exchange in flight, so the end of the earlier
// one will arrive soon.
func (in *inbound) clashes(e Event) bool {
	return slices.ContainsFunc(in.held, func(x exchange) bool {
		return x.peer == e.Peer && (x.running || x.id == e.Exchange)
	})
}

// breakOff breaks off the running exchanges of a peer.
func (in *inbound) breakOff(peer topology.PeerID, actions []Action) []Action {
	for i := range in.held {
		if x := &in.held[i]; x.running && x.peer == peer {
			x.running = false
			actions = append(actions, Action{Kind: Abort, Peer: x.peer, Exchange: x.id, Inbound: true})
		}
	}
	return actions
}

// expire breaks off the exchanges that have lasted for the deadline, after the
// timer set for the event's exchange has fired.
func (in *inbound) expire(now, deadline time.Duration, e Event, actions []Action) []Action {
	if in.armed.is(e) {
		in.armed = exchange{}
	}
	for _, x := range in.held {
		if x.running && now >= later(x.began, deadline) {
			actions = in.breakOff(x.peer, actions)
		}
	}
	return actions
}

// arm sets the timer for the exchange that must end first, unless it is set for that one
// already. If nothing is running, the timer is left as it is.
func (in *inbound) arm(now, deadline time.Duration, timer TimerKind, actions []Action) []Action {
	for _, x := range in.held {
		if !x.running {
			continue
		}
		if x == in.armed {
			return actions
		}
		in.armed = x
		return append(actions, Action{
			Kind: SetTimer, Timer: timer, Exchange: x.id, Peer: x.peer, After: max(later(x.began, deadline)-now, 0),
		})
	}
	return actions
}

// answer accepts or refuses an inbound exchange, at once.
func (m *neighbourhood) answer(now time.Duration, event Event, actions []Action) []Action {
	reply := Action{Kind: Refuse, Peer: event.Peer, Exchange: event.Exchange, Inbound: true}
	if reply.Reason = m.objection(now, event); reply.Reason == 0 {
		m.in.begin(now, event)
		m.accounts.begun(now, event.Peer)
		reply.Kind, reply.Overlap = Accept, m.overlap()
		reply = m.weighed(reply)
	}
	return append(actions, reply)
}

// objection is the reason to refuse a proposal, 0 if there is none. A peer whose record is
// not known is refused: the record may arrive soon, and the peer asks again.
func (m *neighbourhood) objection(now time.Duration, event Event) Reason {
	switch {
	case m.quarantine.holds(event.Peer, now):
		return Quarantine
	case m.role != topology.Passive:
		return WrongRole
	case !m.overlay.View().Has(event.Peer):
		return NotMember
	case !m.fresh(event),
		m.in.running() >= m.config.MaxInbound, m.in.clashes(event), m.beside.in.clashes(event),
		m.unresolved > maxUnresolved, m.overlap() >= MaxOverlap,
		m.stalling.holds(event.Peer, now), !m.accounts.due(now, m.inAnyCase(now), event.Peer):
		return Busy
	}
	return 0
}

// fresh tells whether a proposal names an exchange that its proposer has not proposed before, perhaps as a member of another
// site, and notes it.
func (m *neighbourhood) fresh(event Event) bool {
	here, there := m.accounts.fresh(event), m.beside.accounts.fresh(event)
	return here && there
}

// inAnyCase is the time without an exchange after which a proposer is due one, whatever
// others have had: if this peer takes no steps, proposals may be that rare.
func (m *neighbourhood) inAnyCase(now time.Duration) time.Duration {
	if last := m.pace.lastStep; last > 0 && now < later(last, m.config.Deadline) {
		return m.config.Deadline
	}
	return m.config.RetryAfter
}

// ended handles the end of an inbound exchange. It returns false if there is no such
// exchange. A proposer that held a place in vain is refused for several times as long, and
// for longer each time until an exchange succeeds. An honest proposer also pauses after a
// failure.
func (m *neighbourhood) ended(now time.Duration, event Event) bool {
	began, ok := m.in.end(event)
	switch {
	case !ok:
	case m.accounts.ended(now, now-began, event):
		grows := grown(m.config.RetryAfter, m.stalling.times(event.Peer))
		m.stalling.hold(event.Peer, later(now, max(grows, stallPause(now-began, maxStallCost, m.config.RetryAfter))))
	case event.Kind == Finished:
		m.stalling.lift(event.Peer)
	}
	return ok
}

// overlap counts the exchanges that may still change this peer's model. One across lasts long, but each slice of it
// does not: those inside are over before it.
func (m *neighbourhood) overlap() int {
	n := m.running() + m.unresolved
	if !m.across {
		n += m.beside.running()
	}
	return n
}

// running counts those of this part of the machine.
func (m *neighbourhood) running() int {
	n := len(m.in.held)
	if m.out.running {
		n++
	}
	return n
}
