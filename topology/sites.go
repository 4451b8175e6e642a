package topology

import (
	"cmp"
	"slices"
)

// group is members by their role, as places in the view.
type group [Passive + 1][]int

// proper tells whether the members can exchange with one another.
func (g group) proper() bool { return len(g[Active]) > 0 && len(g[Passive]) > 0 }

// bySite parts the members of a view into groups that can exchange within, in an order that does not depend on
// how many members a site has. Those at sites where all are of one class, such as sites of one member, are
// together the last group; if these too are of one class, they belong to the first.
func bySite(v *View) []group {
	at := make(map[string]*group)
	var names []string
	for i, m := range v.members {
		site := siteOf(v.shape, m)
		if at[site] == nil {
			at[site] = new(group)
			names = append(names, site)
		}
		at[site][m.Role] = append(at[site][m.Role], i)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(hashID(PeerID(a)), hashID(PeerID(b))), cmp.Compare(a, b))
	})
	var groups []group
	var rest group
	for _, name := range names {
		if g := at[name]; g.proper() {
			groups = append(groups, *g)
		} else {
			rest.add(*g)
		}
	}
	switch {
	case rest.proper() || len(groups) == 0:
		groups = append(groups, rest)
	case len(rest[Active])+len(rest[Passive]) > 0:
		groups[0].add(rest)
	}
	return groups
}

// siteOf is the site of a member as far as it counts: links of other shapes do not look at sites.
func siteOf(s Shape, m Member) string {
	if s != Exponential {
		return ""
	}
	return m.Place.Site
}

// add takes further members in, in the view's order.
func (g *group) add(more group) {
	for role := range g {
		g[role] = append(g[role], more[role]...)
		slices.Sort(g[role])
	}
}

// link joins the meshes of groups: number them round a ring, and each is joined to those 1, 2, 4, ... places on. The link
// is between delegates, an active one of the first group and a passive one of the second, so however many
// members a group has, one of each class exchanges across.
func link(v *View, groups []group) map[int][]int {
	across, joined := make(map[int][]int), make(map[[2]int]bool)
	for hop := 1; hop < len(groups); hop *= 2 {
		for i := range groups {
			j := (i + hop) % len(groups)
			if pair := [2]int{min(i, j), max(i, j)}; !joined[pair] {
				joined[pair] = true
				a, p := slices.MinFunc(groups[i][Active], byUplink(v)), slices.MinFunc(groups[j][Passive], byUplink(v))
				across[a], across[p] = append(across[a], p), append(across[p], a)
			}
		}
	}
	return across
}

// byUplink puts the member with the better uplink first, and of equal ones the first in the view's order, so that
// few of those who come later are before it. Who tells of none has not bounded it.
func byUplink(v *View) func(a, b int) int {
	unbounded := func(i int) Uplink { return v.members[i].Place.Uplink - 1 } // 0, which is not known, is the most
	return func(a, b int) int {
		return cmp.Or(cmp.Compare(unbounded(b), unbounded(a)), cmp.Compare(a, b))
	}
}
