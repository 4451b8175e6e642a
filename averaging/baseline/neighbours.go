package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is what DPSGD does at the barrier.

// degree is how many neighbours there are, and the least that each exchange counts as one
// of: with two, the weights are a third each, whichever comes first.
func (m *DPSGD) degree() int {
	n := 0
	for _, l := range m.links {
		if l.peer != "" {
			n++
		}
	}
	return max(n, len(m.in)+len(m.out))
}

// meet proposes to the next member once it is at the same barrier, and lets the trainer
// go on once both exchanges are over.
func (m *DPSGD) meet() {
	if !m.waiting {
		return
	}
	if l := m.links[0]; l.peer != "" && !l.out && !l.over && !m.over && l.round == m.round && !m.engaged(l.peer) {
		m.lastID++
		m.out = append(m.out, flight{id: m.lastID, peer: l.peer, began: m.now})
		m.do(averaging.Action{
			Kind: averaging.Propose, Peer: l.peer, Exchange: m.lastID, Buffer: averaging.Parameters, Overlap: m.degree(),
		})
	}
	if m.busy() {
		return
	}
	for _, l := range m.links {
		if l.peer != "" && !l.out && !l.over && !m.over {
			return
		}
	}
	m.proceed()
}

// busy tells whether an exchange runs.
func (m *DPSGD) busy() bool {
	return len(m.out) > 0 || slices.ContainsFunc(m.in, func(f flight) bool { return !f.aborted })
}

// proposed answers the member before.
func (m *DPSGD) proposed(e averaging.Event) {
	l := &m.links[1]
	switch {
	case m.over:
		m.refuse(e, averaging.Closing)
	case !m.waiting || l.peer != e.Peer || l.over:
		m.refuse(e, averaging.Round)
	case m.engaged(e.Peer):
		m.refuse(e, averaging.Busy)
	default:
		l.out = false
		m.in = append(m.in, flight{id: e.Exchange, peer: e.Peer, began: m.now})
		m.do(averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Overlap: m.degree()})
	}
}

// declined hears that the next member did not take part: it has gone on, and its next
// word tells where it is.
func (m *DPSGD) declined(e averaging.Event) {
	if _, found := m.landed(e); !found {
		return
	}
	l := &m.links[0]
	switch {
	case l.peer != e.Peer:
	case e.Reason == averaging.Round || e.Reason == averaging.Busy:
		l.round = 0
		m.tellAt(*l)
	default:
		l.out = true
	}
}

// exchanged is the end of an exchange, whole or not: that of this round is over.
func (m *DPSGD) exchanged(e averaging.Event) {
	f, found := m.landed(e)
	if !found || f.aborted || !m.waiting {
		return
	}
	for i := range m.links {
		if l := &m.links[i]; l.peer == e.Peer {
			l.over = true
			if e.Kind == averaging.Failed {
				m.tellAt(*l) // the other side may never have known of it
			}
		}
	}
}

// leaveOut goes on without a neighbour, until it speaks.
func (m *DPSGD) leaveOut(peer topology.PeerID) {
	m.abort(peer)
	for i := range m.links {
		if m.links[i].peer == peer {
			m.links[i].out = true
		}
	}
}

// impatient speaks again, and goes on without those that the others would wait for too
// long.
func (m *DPSGD) impatient() {
	if m.parting > 0 {
		m.parting--
		m.farewell()
	}
	for _, f := range slices.Concat(m.out, m.in) {
		if !f.aborted && m.now-f.began >= m.config.Deadline {
			m.leaveOut(f.peer)
		}
	}
	if !m.waiting {
		return
	}
	for _, l := range m.links {
		switch {
		case l.peer == "" || l.over || l.out:
		case m.now-m.since >= m.config.Deadline && !m.engaged(l.peer):
			m.leaveOut(l.peer)
		default:
			m.tellAt(l)
		}
	}
}

func (m *DPSGD) farewell() {
	for _, l := range m.links {
		m.tell(l.peer, word(wordGone, m.round, 0, 0))
	}
}

// part ends this peer's part in the run, once no exchange runs.
func (m *DPSGD) part() {
	if !m.over || m.waiting || m.settled || m.busy() {
		return
	}
	m.parting = farewells - 1
	m.farewell()
	m.settle()
}
