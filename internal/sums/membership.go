package sums

import (
	"maps"
	"slices"
)

// membership is the present members, and the coordinator.
type membership struct {
	self    ID
	members []ID // possible coordinators, in order, this member included
	places  map[ID]int
	excused map[ID]bool // members that are not waited for, for example because their release does not support sums
	leader  ID          // the coordinator of the last sum, while it is a member
	group   []ID        // participants of that sum, if this member coordinated it
}

func newMembership(self ID) membership {
	return membership{self: self, excused: make(map[ID]bool)}
}

// here tells whether one is a member.
func (m *membership) here(id ID) bool {
	_, here := m.places[id]
	return here
}

// see takes the present members, in their order.
func (m *membership) see(members []ID) {
	if m.members = slices.Clone(members); !slices.Contains(m.members, m.self) {
		m.members = append(m.members, m.self)
	}
	m.places = make(map[ID]int, len(m.members))
	for i, id := range m.members {
		m.places[id] = i
	}
	maps.DeleteFunc(m.excused, func(id ID, _ bool) bool { return !m.here(id) })
	if !m.here(m.leader) {
		m.leader, m.group = "", nil
	}
}

// excuse excuses a member, and tells whether it was not excused before.
func (m *membership) excuse(member ID) bool {
	if m.excused[member] || member == m.self {
		return false
	}
	if m.excused[member] = true; m.leader == member {
		m.leader, m.group = "", nil
	}
	return true
}

// Coordinator is the coordinator, as far as this member knows.
func (m *membership) Coordinator() ID {
	if m.leader != "" {
		return m.leader
	}
	for _, id := range m.members {
		if !m.excused[id] {
			return id
		}
	}
	return m.self
}

// Expect makes the next sum wait for a member that took no part in the last one, if this member coordinates.
func (m *membership) Expect(member ID) {
	if m.group != nil && !slices.Contains(m.group, member) {
		m.group = append(slices.Clip(m.group), member)
	}
}

// Group is the participants of the last sum, if this member coordinated it.
func (m *membership) Group() []ID { return m.group }
