package collective

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// see shows members to one of them.
func see(t *testing.T, m *Members, ids ...topology.PeerID) (gone []topology.PeerID) {
	t.Helper()
	var list []topology.Member
	for _, id := range ids {
		list = append(list, topology.Member{ID: id, Unreachable: id == "far"})
	}
	view, err := topology.NewView(list)
	if err != nil {
		t.Fatal(err)
	}
	return m.See(view)
}

// Who cannot be dialled coordinates last, who is passed does not until it speaks, and nothing
// is remembered of those who have left.
func TestMembersInOrder(t *testing.T) {
	m := Members{Self: "self"}
	see(t, &m, "far", "near", "self", "other")
	all := slices.Collect(m.All)
	if len(all) != 3 || all[2] != "far" {
		t.Fatalf("the others are %v", all)
	}
	m.Pass("near")
	m.Pass("other")
	if m.First() != "self" || !slices.Equal(slices.Collect(m.Others), []topology.PeerID{"far"}) {
		t.Errorf("%s is first, others are %v", m.First(), slices.Collect(m.Others))
	}
	m.Pass("self")
	if m.First() != "far" {
		t.Errorf("%s is first", m.First())
	}
	m.Spoke("near", 1)
	if m.First() != "near" {
		t.Errorf("%s is first", m.First())
	}
	if gone := see(t, &m, "near", "far"); !slices.Equal(gone, []topology.PeerID{"other"}) {
		t.Errorf("%v have gone", gone)
	}
	m.Spoke("near", 2)
	see(t, &m, "self", "far")
	if !slices.Equal(m.passed, []topology.PeerID{"self"}) || len(m.spoke) > 0 {
		t.Errorf("%v are remembered, and that %v spoke", m.passed, m.spoke)
	}
}
