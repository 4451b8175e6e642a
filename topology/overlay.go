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
type Overlay struct {
	view *View
	// rank is each member's place in its class, by its place in the view.
	rank []int
	// large and small are the classes, as places in the view.
	large, small []int
	largeRole    Role
	offsets      []int // from a member of the larger class
	back         []int // from one of the smaller
	tree         [][]int
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
	o := &Overlay{view: v, rank: make([]int, v.Len())}
	var class [Passive + 1][]int
	class[Active] = make([]int, 0, v.Actives())
	class[Passive] = make([]int, 0, v.Passives())
	for i, m := range v.members {
		o.rank[i] = len(class[m.Role])
		class[m.Role] = append(class[m.Role], i)
	}
	o.largeRole = Active
	if v.Passives() > v.Actives() {
		o.largeRole = Passive
	}
	o.large, o.small = class[o.largeRole], class[o.largeRole.opposite()]
	switch {
	case v.shape == Tree && v.Len() > 1:
		o.tree = grow(class)
	case v.shape == Ring && len(o.small) > 1:
		o.offsets, o.back = []int{0, 1}, []int{0, len(o.small) - 1}
	default: // they are closed under negation
		o.offsets = offsets(len(o.small))
		o.back = o.offsets
	}
	return o, nil
}

// offsets are 0, +1, -1, +2, -2, +4, ... below n, as residues modulo n, each
// residue once.
func offsets(n int) []int {
	if n == 0 {
		return nil
	}
	list := []int{0}
	for step := 1; step < n; step *= 2 {
		for _, o := range []int{step, n - step} {
			if !slices.Contains(list, o) {
				list = append(list, o)
			}
		}
	}
	return list
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
	if !ok {
		return nil
	}
	if o.view.Len() < 2 {
		return nil
	}
	list := make([]PeerID, 0, len(o.offsets))
	for j := range o.neighbours(i) {
		list = append(list, o.view.members[j].ID)
	}
	return list
}

// Anchored returns the overlay with further links that one active member initiates
// exchanges on, and that nobody else knows of: the passive members among ids that are not
// neighbours yet come last among its Neighbours. An attacker that makes up identities can
// choose their places in the order of members, and so become a member's neighbours; it
// cannot choose a member's anchors. Edges leaves them out.
func (o *Overlay) Anchored(of PeerID, ids []PeerID) *Overlay {
	self, ok := o.view.Lookup(of)
	if !ok || self.Role != Active {
		return o
	}
	with := *o
	with.anchors, with.anchored = nil, of
	all := with.Neighbours(of)
	rule := len(all)
	for _, id := range ids {
		if m, ok := o.view.Lookup(id); ok && m.Role == Passive && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	with.anchors = all[rule:]
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
			for j := range o.neighbours(i) {
				if !yield(Edge{Active: m.ID, Passive: o.view.members[j].ID}) {
					return
				}
			}
		}
	}
}

// neighbours yields the neighbours of the member at place i, as places.
func (o *Overlay) neighbours(i int) iter.Seq[int] {
	switch {
	case o.tree != nil:
		return slices.Values(o.tree[i])
	case o.view.members[i].Role == o.largeRole:
		return o.fromLarge(o.rank[i])
	}
	return o.fromSmall(o.rank[i])
}

// fromLarge yields the neighbours of member rank of L.
func (o *Overlay) fromLarge(rank int) iter.Seq[int] {
	return func(yield func(int) bool) {
		l, s := len(o.large), len(o.small)
		for _, offset := range o.offsets {
			if !yield(o.small[(rank*s/l+offset)%s]) {
				return
			}
		}
	}
}

// fromSmall yields the neighbours of member rank of S: the members of L that fall on
// rank + offset, of the offsets back. Where
// several fall on one place, each lap round the offsets takes another of them,
// and next to each other not the same one: taking all of one place in a row
// mixes three times slower at 10 actives to 90 passives.
func (o *Overlay) fromSmall(rank int) iter.Seq[int] {
	return func(yield func(int) bool) {
		l, s := len(o.large), len(o.small)
		for lap := range (l + s - 1) / s {
			for k, offset := range o.back {
				first, end := o.span((rank + offset) % s)
				if width := end - first; lap < width && !yield(o.large[first+(lap+k)%width]) {
					return
				}
			}
		}
	}
}

// span is the range of members of L that fall on member k of S at offset 0:
// those i with ⌊i·|S|/|L|⌋ = k.
func (o *Overlay) span(k int) (first, end int) {
	l, s := len(o.large), len(o.small)
	return (k*l + s - 1) / s, ((k+1)*l + s - 1) / s
}
