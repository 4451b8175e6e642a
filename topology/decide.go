package topology

// maxRatio is how many times as many members the larger class may have. Mixing
// per exchange is as fast at 1:2 as at 1:1, so roles are left alone within it.
const maxRatio = 2

// decide gives every member of an ordered view its role; NewView states the rule.
func (v *View) decide() {
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
	flipped := v.flip(larger, surplus(count[larger], count[larger.opposite()]))
	count[larger] -= flipped
	count[larger.opposite()] += flipped
	v.actives = count[Active]
}

// surplus is the fewest members that must leave the larger class for the smaller
// one so that larger <= maxRatio*smaller holds. One peer alone needs no partner.
func surplus(larger, smaller int) int {
	excess := larger - maxRatio*smaller
	if excess <= 0 || larger+smaller < 2 {
		return 0
	}
	// Each change takes one from the left side and adds maxRatio to the right.
	return (excess + maxRatio) / (maxRatio + 1)
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
