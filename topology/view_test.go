package topology

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The hash, hence the order, the links and the digest, is a contract between
// processes: these values must never change. They were computed from the two
// published definitions by a separate program.
func TestGoldenOrderAndDigest(t *testing.T) {
	const realID = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
	for id, want := range map[PeerID]uint64{"": 0xefd01f60ba992926, "a": 0x82a2a958a9bece5b, realID: 0x38fdfaf72ee89b9e} {
		if got := hashID(id); got != want {
			t.Errorf("hashID(%q) = %#x, want %#x", id, got, want)
		}
	}
	v := mustView(t, []Member{{ID: "a"}, {ID: "b", Unreachable: true}, {ID: "c", Role: Passive}, {ID: "d"}})
	if got, want := v.String(), "active b! d | passive c a"; got != want {
		t.Errorf("view %q, want %q", got, want)
	}
	if got, want := v.Digest(), uint64(0x4499297373dd58ab); got != want {
		t.Errorf("digest %#x, want %#x", got, want)
	}
}

func TestViewFindsMembers(t *testing.T) {
	members := append(peers(50, Undecided), peers(30, Active)...)
	v := mustView(t, members)
	if v.Len() != 80 || v.Actives()+v.Passives() != 80 {
		t.Fatalf("%d members, %d active, %d passive; want 80 in all", v.Len(), v.Actives(), v.Passives())
	}
	actives := 0
	for i, m := range v.Members() {
		if v.At(i) != m {
			t.Errorf("At(%d) = %v, Members has %v", i, v.At(i), m)
		}
		if got, ok := v.Lookup(m.ID); !ok || got != m {
			t.Errorf("Lookup(%q) = %v, %v", m.ID, got, ok)
		}
		if m.Role == Active {
			actives++
		}
	}
	if actives != v.Actives() {
		t.Errorf("Actives() = %d, counted %d", v.Actives(), actives)
	}
	if m, ok := v.Lookup("stranger"); ok {
		t.Errorf("found a stranger: %v", m)
	}
}

// Two ids whose hashes collide are told apart. FNV collisions of short ids are
// hard to come by, so the hashes of a view are made to collide here.
func TestLookupSurvivesCollisions(t *testing.T) {
	v := mustView(t, peers(5, Active))
	last := v.At(4)
	for i := range v.hashes {
		v.hashes[i] = hashID(last.ID)
	}
	if m, ok := v.Lookup(last.ID); !ok || m.ID != last.ID {
		t.Errorf("Lookup(%q) = %v, %v among equal hashes", last.ID, m, ok)
	}
}

func TestViewIsIndependentOfItsArgument(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	members := append(append(peers(20, Undecided), peers(9, Active)...), Member{ID: "nat", Unreachable: true})
	v := mustView(t, members)
	other := shuffled(rng, members)
	w := mustView(t, other)
	if v.String() != w.String() || v.Digest() != w.Digest() {
		t.Errorf("order of the argument matters:\n%v\n%v", v, w)
	}
	before := w.String()
	for i := range other {
		other[i] = Member{}
	}
	w.Members()[0].Role = Undecided
	if w.String() != before {
		t.Error("the view shares memory with its argument or its result")
	}
}

func TestDigestTellsViewsApart(t *testing.T) {
	base := []Member{{ID: "ab", Role: Active}, {ID: "c", Role: Passive}}
	seen := map[uint64]string{}
	for name, members := range map[string][]Member{
		"base":        base,
		"other cut":   {{ID: "a", Role: Active}, {ID: "bc", Role: Passive}},
		"other roles": {{ID: "ab", Role: Passive}, {ID: "c", Role: Active}},
		"one more":    append(slices.Clone(base), Member{ID: "d"}),
		"one less":    base[:1],
		"none":        nil,
	} {
		d := mustView(t, members).Digest()
		if duplicate, ok := seen[d]; ok {
			t.Errorf("%q and %q have the same digest", name, duplicate)
		}
		seen[d] = name
	}
}

func TestNewViewReportsAllFaults(t *testing.T) {
	_, err := NewView([]Member{{ID: "a"}, {ID: ""}, {ID: "b", Role: 7}, {ID: "a", Role: Active}})
	if !errors.Is(err, ErrMember) {
		t.Fatalf("error %v is no ErrMember", err)
	}
	for _, want := range []string{"empty id", `"b" has unknown role 7`, `"a" appears twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func TestNewViewBoundsItsError(t *testing.T) {
	_, err := NewView(make([]Member, 1000))
	if lines := strings.Count(fmt.Sprint(err), "\n") + 1; lines != maxFaults+1 {
		t.Errorf("%d lines for 1000 faults, want %d", lines, maxFaults+1)
	}
	if _, err = NewView(make([]Member, MaxMembers+1)); !errors.Is(err, ErrTooManyMembers) {
		t.Errorf("error %v, want ErrTooManyMembers", err)
	}
}

func TestRoleNames(t *testing.T) {
	for role, want := range map[Role]string{Undecided: "undecided", Active: "active", Passive: "passive", 9: "role 9"} {
		if role.String() != want {
			t.Errorf("Role(%d) is %q, want %q", uint8(role), role, want)
		}
		if role.Valid() != (role < 3) {
			t.Errorf("Role(%d).Valid() = %v", uint8(role), role.Valid())
		}
	}
}
