package topology

// maxRatio is how many times as many members the larger class may have. Mixing
// per exchange is as fast at 1:2 as at 1:1, so roles are left alone within it.
const maxRatio = 2

// decide gives every member of an ordered view its role; NewView states the rule.
func (v *View) decide() {
	if v.shape == Star {
		v.actives = appoint(v.members)
		return
	}
	var count [Passive + 1]int
	for i := range v.members {
		m := &v.members[i]
		if m.Unreachable {
			m.Role = Active
		}
		count[m.Role]++
	}
	for i := range v.members {
		m := &v.members[i]
		if m.Role == Undecided {
			m.Role = Passive
			if count[Active] < count[Passive] {
				m.Role = Active
			}
			count[m.Role]++
		}
	}
	larger := Active
	if count[Passive] > count[Active] {
		larger = Passive
	}
	flipped := v.flip(larger, v.shape.surplus(count[larger], count[larger.opposite()]))
	count[larger] -= flipped
	count[larger.opposite()] += flipped
	v.actives = count[Active]
}

// appoint makes one reachable member the hub, and all others active: a passive one if there is any, else the
// first in the view's order.
func appoint(members []Member) (actives int) {
	hub := -1
	for i := range members {
		m := &members[i]
		if better := m.Role == Passive && (hub < 0 || members[hub].Role != Passive); !m.Unreachable && (better || hub < 0) {
			hub = i
		}
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

// flip moves up to k reachable members of a class to the other, the first in the
// view's order first, and returns how many there were. Views that differ in a
// member or two still agree on nearly all of them.
func (v *View) flip(class Role, k int) int {
	flipped := 0
	for i := range v.members {
		if flipped == k {
			break
		}
		if m := &v.members[i]; m.Role == class && !m.Unreachable {
			m.Role = class.opposite()
			flipped++
		}
	}
	return flipped
}
