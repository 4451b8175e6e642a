package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is how the leader of the ring goes on without members.

// dismiss goes on without a member.
func (m *AllReduce) dismiss(id topology.PeerID) {
	i := slices.IndexFunc(m.members, func(a attendant) bool { return a.id == id })
	if i < 0 || !m.leads() {
		return
	}
	m.abortOut(id)
	inRing := m.members[i].state == placed || m.members[i].state == finished
	m.members = slices.Delete(m.members, i, i+1)
	m.awaited = max(m.awaited-1, 0)
	if inRing && m.running {
		m.regroup()
	}
}

// regroup breaks the attempt off. Who answers is in the next.
func (m *AllReduce) regroup() {
	m.running = false
	for i := range m.members {
		if a := &m.members[i]; a.state == placed || a.state == finished {
			a.state = expected
			m.tell(a.id, word(wordRegroup, m.ring.attempt, m.lineage, 0))
		}
	}
	m.regrouped(m.ring.attempt)
	m.opened()
}

// accused handles that a member's attempt has broken off.
func (m *AllReduce) accused(by topology.PeerID, w averaging.Word) {
	if m.leads() && m.running && w.Round == m.ring.attempt {
		m.accuse(by, m.find(w.View))
	}
}

// accuse breaks the attempt off, and leaves a member out that cannot be sent to; if that
// is the leader itself, the one that cannot send to it. A leader whose own gradient cannot
// be sent lets another lead, which will leave it out.
func (m *AllReduce) accuse(by, suspect topology.PeerID) {
	if suspect == m.self {
		suspect = by
	}
	next := m.ring.next
	m.regroup()
	if suspect == m.self {
		if m.unable++; m.unable >= maxCharges && next != m.self {
			m.handOver(next)
		}
		return
	}
	i := slices.IndexFunc(m.members, func(a attendant) bool { return a.id == suspect })
	if i < 0 {
		return
	}
	m.members[i].charges++
	if m.members[i].charges >= maxCharges {
		m.barred = slices.DeleteFunc(m.barred, func(b bar) bool { return b.id == suspect || m.round >= b.until })
		m.barred = append(m.barred, bar{id: suspect, until: m.round + barredRounds})
		m.dismiss(suspect)
	}
}

// attend speaks to those who do not follow, and goes on without those who are silent.
func (m *AllReduce) attend() {
	for id := range m.others {
		if !slices.ContainsFunc(m.members, func(a attendant) bool { return a.id == id && !(m.resting && a.state == expected) }) {
			m.tell(id, m.standing().word(m.lineage))
		}
	}
	if !m.running || m.now-m.moved < m.config.Deadline {
		return
	}
	for _, a := range slices.Clone(m.members) {
		if a.state == placed && m.now-a.heard >= m.config.Deadline {
			m.dismiss(a.id)
		}
	}
}
