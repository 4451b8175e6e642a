package topology

import (
	"fmt"
	"iter"
	"slices"
)

// Overlay is the set of links between the members of a view. It is immutable and
// small: links follow from a rule and are computed when they are asked for.
//
// The rule of Exponential: take the larger class L and the smaller class S, both in the view's
// order (the actives are L if the classes are equal). Member i of L is joined to
// member (⌊i·|S|/|L|⌋ + o) mod |S| of S, for each offset o of 0, +1, -1, +2, -2,
// +4, -4, ... below |S|. Hence
//
//   - every link joins an active and a passive, and nobody is without a link;
//   - the graph is connected: offsets 0 and 1 already make a ring of it;
//   - a member of L has at most 2⌈log2|S|⌉+1 links, one of S at most ⌈|L|/|S|⌉
//     times as many.
//
// Ring has the offsets 0 and +1 alone, and Star follows from its classes. Tree says its own.
//
// Where members of Exponential name sites (Member.Place), this is the rule among those of each site, and one
// member of each class exchanges across for all. Exchanges on these links, between members that are Apart, are to be fewer, since all
// members of both sites share them.
type Overlay struct {
	view   *View
	rank   []int // each member's place in its class of its mesh, by its place in the view
	home   []int // each member's mesh
	meshes []mesh
	across map[int][]int // between meshes, by the places of members
	tree   [][]int
	// anchors are links that one member keeps beside those of the rule.
	anchors  []PeerID
	anchored PeerID
}

// Edge is one link: who starts exchanges on it, and who answers.
type Edge struct {
	Active, Passive PeerID
}

// NewOverlay makes the links of a view. A view of one member or none has no links. If two
// or more members are all unreachable, the error is ErrNoPassive.
func NewOverlay(v *View) (*Overlay, error) {
	if v.Len() >= 2 && v.Passives() == 0 {
		return nil, fmt.Errorf("topology: new overlay of %d peers: %w", v.Len(), ErrNoPassive)
	}
	o := &Overlay{view: v, rank: make([]int, v.Len()), home: make([]int, v.Len())}
	if v.shape == Tree && v.Len() > 1 {
		o.tree = grow(v)
	}
	groups := bySite(v)
	o.across = link(v, groups)
	for home, group := range groups {
		for _, class := range group {
			for rank, i := range class {
				o.rank[i], o.home[i] = rank, home
			}
		}
		o.meshes = append(o.meshes, newMesh(group, v.shape))
	}
	return o, nil
}

// View is the view that the links belong to.
func (o *Overlay) View() *View { return o.view }

// Neighbours returns the peers that id is joined to, in the order of the offsets:
// nearest first, then alternately forward and back; for a member of the smaller
// class in several laps of that order. Taking them in cyclic order is what mixes
// well. The slice is the caller's; it is nil if id is no member or has no link.
func (o *Overlay) Neighbours(id PeerID) []PeerID {
	list := o.Mutual(id)
	if id == o.anchored {
		list = append(list, o.anchors...)
	}
	return list
}

// Mutual is Neighbours without anchors: the links that both ends know of.
func (o *Overlay) Mutual(id PeerID) []PeerID {
	i, ok := o.view.position(id)
	if !ok || o.view.Len() < 2 {
		return nil
	}
	var list []PeerID
	for _, j := range o.neighbours(i) {
		list = append(list, o.view.members[j].ID)
	}
	return list
}

// AtSiteOf is how many members are at a member's site, as far as links go; 0 if it is none.
func (o *Overlay) AtSiteOf(id PeerID) int {
	i, known := o.view.position(id)
	if !known {
		return 0
	}
	at := o.meshes[o.home[i]]
	return len(at.large) + len(at.small)
}

// Apart tells whether two members are at different sites, as far as links go.
func (o *Overlay) Apart(a, b PeerID) bool {
	i, known := o.view.position(a)
	j, both := o.view.position(b)
	return known && both && o.home[i] != o.home[j]
}

// Anchored returns the overlay with further links that one active member initiates
// exchanges on, and that nobody else knows of: the passive members among ids that are not
// neighbours yet, at its own site, come last among its Neighbours. An attacker that makes up identities can
// choose their places in the order of members, and so become a member's neighbours; it
// cannot choose a member's anchors. Edges leaves them out.
func (o *Overlay) Anchored(of PeerID, ids []PeerID) *Overlay {
	self, ok := o.view.Lookup(of)
	if !ok || self.Role != Active {
		return o
	}
	all := o.Mutual(of)
	rule := len(all)
	for _, id := range ids {
		if m, ok := o.view.Lookup(id); ok && m.Role == Passive && !slices.Contains(all, id) && !o.Apart(of, id) {
			all = append(all, id)
		}
	}
	with := *o
	with.anchors, with.anchored = all[rule:], of
	return &with
}

// Edges yields every link once: by active in the view's order, and for each in
// the order of its neighbours.
func (o *Overlay) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for i, m := range o.view.members {
			if m.Role != Active {
				continue
			}
			for _, j := range o.neighbours(i) {
				if !yield(Edge{Active: m.ID, Passive: o.view.members[j].ID}) {
					return
				}
			}
		}
	}
}

// neighbours are the neighbours of the member at place i, as places.
func (o *Overlay) neighbours(i int) []int {
	if o.tree != nil {
		return o.tree[i]
	}
	return append(o.meshes[o.home[i]].neighbours(o.view.members[i].Role, o.rank[i]), o.across[i]...)
}
