package topology

import (
	"cmp"
	"slices"
)

// maxRatio is how many times as many members the larger class may have. Mixing
// per exchange is as fast at 1:2 as at 1:1, so roles are left alone within it.
const maxRatio = 2

// tally counts members by role.
type tally [Passive + 1]int

// larger is the class with more members; the actives if both have as many.
func (t *tally) larger() Role {
	if t[Passive] > t[Active] {
		return Passive
	}
	return Active
}

// move has one member of a class leave it for the other.
func (t *tally) move(from Role) {
	t[from]--
	t[from.opposite()]++
}

// surplus is the fewest members that must leave the larger class.
func (t *tally) surplus(s Shape) int {
	larger := t.larger()
	return s.surplus(t[larger], t[larger.opposite()])
}

// smaller is the class that one more is to join, which is Undecided where both are equal.
func (t *tally) smaller() Role {
	if t[Active] == t[Passive] {
		return Undecided
	}
	return t.larger().opposite()
}

// decide gives every member of an ordered view its role; NewView states the rule.
func (v *View) decide() {
	if v.shape == Star {
		v.actives = appoint(v.members)
		return
	}
	all, sites := new(tally), make(map[string]*tally)
	at := func(m *Member) *tally {
		site := siteOf(v.shape, *m)
		if sites[site] == nil {
			sites[site] = new(tally)
		}
		return sites[site]
	}
	for i := range v.members {
		m := &v.members[i]
		if m.Unreachable {
			m.Role = Active
		}
		all[m.Role]++
		at(m)[m.Role]++
	}
	for i := range v.members {
		if m := &v.members[i]; m.Role == Undecided {
			m.Role = cmp.Or(at(m).smaller(), all.smaller(), Passive)
			all[m.Role]++
			at(m)[m.Role]++
		}
	}
	flip := func(m *Member) {
		all.move(m.Role)
		at(m).move(m.Role)
		m.Role = m.Role.opposite()
	}
	for i := range v.members {
		m := &v.members[i]
		if site := at(m); !m.Unreachable && site.surplus(v.shape) > 0 && m.Role == site.larger() {
			flip(m)
		}
	}
	for i := range v.members {
		m := &v.members[i]
		if !m.Unreachable && all.surplus(v.shape) > 0 && m.Role == all.larger() && at(m).spares(m.Role, v.shape) {
			flip(m)
		}
	}
	v.actives = all[Active]
}

// spares tells whether one member of a site may leave a class without another having to take its place.
func (t *tally) spares(role Role, s Shape) bool {
	without := *t
	without.move(role)
	return without.surplus(s) == 0
}

// appoint makes one reachable member the hub, and all others active: a passive one if there is any, else the
// first in the view's order.
func appoint(members []Member) (actives int) {
	hub := slices.IndexFunc(members, func(m Member) bool { return m.Role == Passive && !m.Unreachable })
	if hub < 0 {
		hub = slices.IndexFunc(members, func(m Member) bool { return !m.Unreachable })
	}
	for i := range members {
		members[i].Role = Active
	}
	if hub < 0 {
		return len(members)
	}
	members[hub].Role = Passive
	return len(members) - 1
}
