package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
)

// This file is how the leader of the ring brings it to an end.

// rests notes that a member has done its work, and at which parameters.
func (m *AllReduce) rests(a *attendant, w averaging.Word) {
	if a.state == placed || a.state == finished {
		m.regroup()
	}
	switch a.state {
	case waking:
	case catching: // it has what it is sent, of which the end is not here yet
		a.rest = w
	default:
		a.state, a.rest = asleep, w
	}
	m.tell(a.id, word(wordHeard, m.round, m.lineage, 0))
}

// succeed lets one lead that is ready to train.
func (m *AllReduce) succeed() {
	i := slices.IndexFunc(m.members, func(a attendant) bool { return a.state == present })
	m.handOver(m.members[i].id)
}

// alike tells the leader, once everybody rests, whether all have its parameters; it sends
// them to those who have not.
func (m *AllReduce) alike() bool {
	if !m.resting || !m.leads() {
		return false
	}
	for id := range m.others { // those who have departed say so
		m.attendant(id)
	}
	all := true
	for i := range m.members {
		switch a := &m.members[i]; {
		case a.state != asleep:
			all = false
		case !m.level(a, a.rest):
			a.state, all = waking, false
		}
	}
	if slices.ContainsFunc(m.members, func(a attendant) bool { return a.state != asleep && a.state != waking }) {
		return false
	}
	for _, a := range m.members {
		if a.state == waking && !m.sendingTo(a.id, averaging.Parameters) {
			m.handOut(a.id, m.gift(), true)
		}
	}
	return all
}

// woken is the end of what was sent to a member that rests. If that did not arrive, its
// next word shows what it has.
func (m *AllReduce) woken(a *attendant, f flight, well bool) {
	a.state = expected
	if well {
		a.state, a.caught, a.fresh = asleep, f.transfer.Round+1, true
		a.rest = word(wordStatus, f.transfer.Round, 0, 0)
	}
}
