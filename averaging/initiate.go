package averaging

import (
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// initiate proposes the next exchange if one is due, or says that none will
// follow. It runs after every event, so that a partner's refusal is followed by
// a proposal to the next at once.
func (m *ADPSGD) initiate(now time.Duration, actions []Action) []Action {
	if m.out.running || m.settled {
		return actions
	}
	for m.due() {
		next := m.take()
		if !m.passedOver(next, now) && !m.stale(next, now) {
			return m.propose(now, next.id, actions)
		}
	}
	return m.settle(actions)
}

// due tells whether this peer should have an exchange in flight: it is active,
// has somebody left to ask, and its H steps are done or it is parting.
func (m *ADPSGD) due() bool {
	if m.role != topology.Active || len(m.partners) == 0 {
		return false
	}
	if m.over {
		return m.parting > 0
	}
	if !m.owed && m.steps < m.Every() && !m.drifted() {
		return false
	}
	if m.tries == len(m.partners) {
		m.rest()
		return false
	}
	return true
}

// drifted tells whether the model has moved so far that an exchange pays before H
// steps are done.
func (m *ADPSGD) drifted() bool {
	c := m.config.Pace
	return c.Drift > 0 && m.pace.moved > c.Drift && m.steps >= max(c.MinEvery, m.pace.affordable(c.BytesPerHour))
}

// take moves on to the next partner of the cycle.
func (m *ADPSGD) take() partner {
	next := m.partners[m.cursor]
	m.cursor = (m.cursor + 1) % len(m.partners)
	m.tries++
	if m.over {
		m.parting--
	}
	return next
}

// passedOver tells whether a partner is not to be asked at this moment.
func (m *ADPSGD) passedOver(p partner, now time.Duration) bool {
	return now < p.barredUntil || m.failing.holds(p.id, now) || m.quarantine.holds(p.id, now) || m.shunned.holds(p.id, now)
}

// stale tells whether a partner is the one met last while there are others to
// meet: the two models hardly differ. Falling back on it whenever the next is busy
// would let flocks that move in step fall into pairs that never meet.
func (m *ADPSGD) stale(p partner, now time.Duration) bool {
	if m.over || p.id != m.met {
		return false
	}
	for _, other := range m.partners {
		if other.id != p.id && !m.passedOver(other, now) {
			return true
		}
	}
	return false
}

func (m *ADPSGD) propose(now time.Duration, to topology.PeerID, actions []Action) []Action {
	m.lastID++
	m.out = exchange{id: m.lastID, peer: to, began: now, running: true}
	m.owed, m.steps = true, 0
	return append(actions,
		Action{Kind: Propose, Peer: to, Exchange: m.lastID, Buffer: Parameters, Overlap: m.overlap()},
		Action{Kind: SetTimer, Timer: OutboundDeadline, Exchange: m.lastID, Peer: to, After: m.config.Deadline})
}

// rest ends a round in which nobody could be had; the next begins with the next
// step.
func (m *ADPSGD) rest() {
	m.owed, m.tries = false, 0
	m.steps = m.Every() - 1
}

// depart begins the parting pass: each partner is asked once more, since the last
// steps of all should be shared too. One that is busy is busy with that.
func (m *ADPSGD) depart() {
	if m.over {
		return
	}
	m.over = true
	m.parting = len(m.partners)
}

// settle says, once, that nothing more will be initiated.
func (m *ADPSGD) settle(actions []Action) []Action {
	if !m.over {
		return actions
	}
	m.settled = true
	return append(actions, Action{Kind: Settled})
}
