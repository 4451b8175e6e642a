package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxMembers bounds a view. It is far above the size for which the overlay was measured
// (1,000), and it bounds the memory that a false membership can make a peer allocate.
const MaxMembers = 1 << 14

// View is an immutable membership view: members ordered by the hash of their
// identity, each with a role. The order, the roles and everything that follows
// depend on the set of members alone, not on the order in which they were given.
type View struct {
	members []Member // ordered by (hash, id)
	hashes  []uint64 // hash of each member's id, ascending
	actives int
	shape   Shape
	digest  uint64
}

// NewView makes a view whose links are Exponential.
func NewView(members []Member) (*View, error) { return Exponential.View(members) }

// View makes a view and decides the roles in it:
//
//   - an unreachable member is active, whatever it was;
//   - every other member keeps the role that it has;
//   - undecided members join the smaller class at their site, one after the other in the
//     view's order, where both are equal the smaller one of all, and then the passive class,
//     so that a first peer can answer whoever comes next;
//   - if then one class of a site, or of all, has more than twice the members of the other, the fewest
//     members of the larger class that mend it change sides: the reachable ones
//     that come first in the view's order. If too few of them are reachable, all
//     of these change, and the classes stay as unequal as they must. In a Ring they
//     may differ by one. In a Star one member is passive, as Star says.
//
// A view of the members of a view is the same view. The members slice is not
// kept. The error lists all faults of the members at once: it satisfies
// errors.Is with ErrMember, or with ErrTooManyMembers if there are so many that
// none was looked at.
func (s Shape) View(members []Member) (*View, error) {
	if len(members) > MaxMembers {
		return nil, fmt.Errorf("topology: new view: %w: %d, at most %d", ErrTooManyMembers, len(members), MaxMembers)
	}
	v := ordered(members)
	v.shape = s
	if err := v.check(); err != nil {
		return nil, err
	}
	v.decide()
	v.digest = v.computeDigest()
	return v, nil
}

// ordered copies the members into the view's order.
func ordered(members []Member) *View {
	type keyed struct {
		hash  uint64
		index int
	}
	keys := make([]keyed, len(members))
	for i := range members {
		keys[i] = keyed{hash: hashID(members[i].ID), index: i}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Compare(members[a.index].ID, members[b.index].ID)
	})
	v := &View{members: make([]Member, len(members)), hashes: make([]uint64, len(members))}
	for i, k := range keys {
		v.members[i], v.hashes[i] = members[k.index], k.hash
	}
	return v
}

// maxFaults bounds how many faulty members one error lists.
const maxFaults = 16

// check reports the faults of the members. Equal ids are neighbours in the order.
func (v *View) check() error {
	var faults []error
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("topology: new view: %w: "+format, append([]any{ErrMember}, args...)...))
	}
	for i, m := range v.members {
		if m.ID == "" {
			add("empty id")
		} else if i > 0 && m.ID == v.members[i-1].ID {
			add("%q appears twice", m.ID)
		}
		if !m.Role.Valid() {
			add("%q has unknown %v", m.ID, m.Role)
		}
	}
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Errorf("topology: new view: %d more faults", more))
	}
	return errors.Join(faults...)
}

// Shape is the kind of graph that the view's links form.
func (v *View) Shape() Shape { return v.shape }

// Len is the number of members.
func (v *View) Len() int { return len(v.members) }

// At is member i in the view's order, 0 <= i < Len.
func (v *View) At(i int) Member { return v.members[i] }

// Lookup finds a member by id.
func (v *View) Lookup(id PeerID) (Member, bool) {
	i, ok := v.position(id)
	if !ok {
		return Member{}, false
	}
	return v.members[i], true
}

// Has tells whether a peer is a member.
func (v *View) Has(id PeerID) bool {
	_, has := v.position(id)
	return has
}

// position is the place of id in the view's order.
func (v *View) position(id PeerID) (int, bool) {
	h := hashID(id)
	i, _ := slices.BinarySearch(v.hashes, h)
	for ; i < len(v.hashes) && v.hashes[i] == h; i++ {
		if v.members[i].ID == id {
			return i, true
		}
	}
	return 0, false
}

// Members returns a copy of the members in the view's order, roles decided.
func (v *View) Members() []Member { return slices.Clone(v.members) }

// Actives is the number of active members.
func (v *View) Actives() int { return v.actives }

// Passives is the number of passive members.
func (v *View) Passives() int { return len(v.members) - v.actives }

// Digest is a hash of all ids, roles and places. Two peers whose digests are equal have the same
// overlay. It is the same in every process and on every processor, and part of the wire
// format; it does not protect against an adversary.
func (v *View) Digest() uint64 { return v.digest }

func (v *View) computeDigest() uint64 {
	h := uint64(fnvOffset)
	for _, m := range v.members {
		// The length keeps "ab","c" and "a","bc" apart.
		for shift := 0; shift < 32; shift += 8 {
			h = foldByte(h, byte(len(m.ID)>>shift))
		}
		if h = foldByte(fold(h, string(m.ID)), byte(m.Role)); m.ServesOnly {
			h = foldByte(h, 1)
		}
		if m.Place != (Place{}) {
			h = foldByte(fold(foldByte(h, byte(2+len(m.Place.Site))), m.Place.Site), byte(m.Place.Uplink))
		}
	}
	return finish(h)
}

// String is one line for transcripts: the members of each class in order, the
// unreachable ones marked with an exclamation mark.
func (v *View) String() string {
	var classes [Passive + 1]strings.Builder
	for _, m := range v.members {
		class := &classes[m.Role]
		class.WriteString(" " + string(m.ID))
		if m.Unreachable {
			class.WriteByte('!')
		}
	}
	return fmt.Sprintf("%s%s | %s%s", Active, &classes[Active], Passive, &classes[Passive])
}
