package collective

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Members are the members of a view in the order in which they coordinate: those that only serve first, those that
// cannot be dialled last.
type Members struct {
	Self   topology.PeerID
	Turn   int // which of its kind is the first, from 0, counted round; for the next view
	order  []topology.PeerID
	place  map[topology.PeerID]int           // of each in order
	passed []topology.PeerID                 // lost or silent: ignored until they send a message
	spoke  map[topology.PeerID]time.Duration // time of the last message of each
	count  uint64                            // of changes
}

// See takes the members of a view, and returns which others have left.
func (m *Members) See(view *topology.View) (gone []topology.PeerID) {
	before := m.order
	m.count++
	m.order = nil
	var kinds [3][]topology.PeerID
	for i := range view.Len() {
		x, kind := view.At(i), 1
		if x.Unreachable {
			kind = 2
		} else if x.ServesOnly {
			kind = 0
		}
		kinds[kind] = append(kinds[kind], x.ID)
	}
	for _, alike := range kinds {
		if n := len(alike); n > 0 {
			m.order = slices.Concat(m.order, alike[m.Turn%n:], alike[:m.Turn%n])
		}
	}
	m.place = make(map[topology.PeerID]int, len(m.order))
	for at, id := range m.order {
		m.place[id] = at
	}
	m.passed = slices.DeleteFunc(m.passed, func(id topology.PeerID) bool { return id != m.Self && !m.Has(id) })
	maps.DeleteFunc(m.spoke, func(id topology.PeerID, _ time.Duration) bool { return !m.Has(id) })
	return slices.DeleteFunc(before, func(id topology.PeerID) bool { return id == m.Self || m.Has(id) })
}

// Place is this peer's place among the members, -1 if it is none, and their number.
func (m *Members) Place() (at, n int) { return m.at(m.Self), len(m.order) }

// at is a member's place, -1 if it is none.
func (m *Members) at(id topology.PeerID) int {
	if at, is := m.place[id]; is {
		return at
	}
	return -1
}

// Has tells whether a peer is a member.
func (m *Members) Has(id topology.PeerID) bool { return m.at(id) >= 0 }

// Find finds the member with a mark, its Fingerprint; the result is empty if there is none.
func (m *Members) Find(mark uint64) topology.PeerID {
	i := slices.IndexFunc(m.order, func(id topology.PeerID) bool { return id.Fingerprint() == mark })
	if i < 0 {
		return ""
	}
	return m.order[i]
}

// First is the first member that is not ignored, this peer if there is none.
func (m *Members) First() topology.PeerID {
	i := slices.IndexFunc(m.order, func(id topology.PeerID) bool { return !m.Passed(id) })
	if i < 0 {
		return m.Self
	}
	return m.order[i]
}

// Before tells whether a comes before b in the order.
func (m *Members) Before(a, b topology.PeerID) bool { return m.at(a) < m.at(b) }

// All are the other members.
func (m *Members) All(yield func(topology.PeerID) bool) {
	for _, id := range m.order {
		if id != m.Self && !yield(id) {
			return
		}
	}
}

// Others are the other members that are not ignored.
func (m *Members) Others(yield func(topology.PeerID) bool) {
	for id := range m.All {
		if !m.Passed(id) && !yield(id) {
			return
		}
	}
}

// Pass ignores a peer until it sends a message.
func (m *Members) Pass(id topology.PeerID) {
	if !m.Passed(id) {
		m.passed = append(m.passed, id)
	}
}

// Passed tells whether a peer is ignored.
func (m *Members) Passed(id topology.PeerID) bool { return slices.Contains(m.passed, id) }

// Spoke notes a message of a member, which is not ignored from then on.
func (m *Members) Spoke(id topology.PeerID, now time.Duration) {
	if m.spoke == nil {
		m.spoke = make(map[topology.PeerID]time.Duration)
	}
	m.spoke[id] = now
	m.passed = slices.DeleteFunc(m.passed, func(x topology.PeerID) bool { return x == id })
}
