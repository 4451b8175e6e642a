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
func (v *View) bySite() []group {
	at := make(map[string]*group)
	var names []string
	for i, m := range v.members {
		site := v.siteOf(m)
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
func (v *View) siteOf(m Member) string {
	if v.shape != Exponential {
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

// link joins the groups: number them round a ring, and each is joined to those 1, 2, 4, ... places on. The link
// is between delegates, an active one of the first group and a passive one of the second, so however many
// members a group has, one of each class exchanges across.
func (o *Overlay) link() {
	groups := len(o.meshes)
	if groups < 2 {
		return
	}
	o.across = make(map[int][]int)
	joined := make(map[[2]int]bool)
	for hop := 1; hop < groups; hop *= 2 {
		for i := range groups {
			j := (i + hop) % groups
			if pair := [2]int{min(i, j), max(i, j)}; joined[pair] {
				continue
			} else {
				joined[pair] = true
			}
			a, p := o.view.delegate(o.meshes[i].class(Active)), o.view.delegate(o.meshes[j].class(Passive))
			o.across[a], o.across[p] = append(o.across[a], p), append(o.across[p], a)
		}
	}
}

// delegate is the member with the best uplink, of equal ones the first in the view's order: of those who come
// later few are before it.
func (v *View) delegate(of []int) int {
	return slices.MinFunc(of, func(a, b int) int { return v.byUplink(a, b) })
}

// byUplink puts the member with the better uplink first, and of equal ones the first in the view's order. Who
// tells of none has not bounded it.
func (v *View) byUplink(a, b int) int {
	unbounded := func(i int) int { return int(v.members[i].Place.Uplink-1) & 0xff } // 0, which is not known, is the most
	return cmp.Or(cmp.Compare(unbounded(b), unbounded(a)), cmp.Compare(a, b))
}
