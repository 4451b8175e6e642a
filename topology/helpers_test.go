package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// peers are n members with ids of one prefix.
func peers(n int, role Role) []Member {
	list := make([]Member, n)
	for i := range list {
		list[i] = Member{ID: PeerID(fmt.Sprintf("%v-%d", role, i)), Role: role}
	}
	return list
}

// classes are a view's members: some active, some passive; unreachable actives
// if the classes are so unequal that the view would otherwise mend them.
func classes(actives, passives int) []Member {
	a := peers(actives, Active)
	for i := range a {
		a[i].Unreachable = actives > maxRatio*passives
	}
	return append(a, peers(passives, Passive)...)
}

func mustView(t testing.TB, members []Member) *View {
	t.Helper()
	v, err := NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustOverlay(t testing.TB, members []Member) *Overlay {
	t.Helper()
	o, err := NewOverlay(mustView(t, members))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// overlayOf bypasses the roles' rule, so that a test can look at classes that
// NewView would mend, such as 10 actives to 90 reachable passives.
func overlayOf(t testing.TB, actives, passives int) *Overlay {
	t.Helper()
	v := ordered(append(peers(actives, Active), peers(passives, Passive)...))
	v.actives = actives
	o, err := NewOverlay(v)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func shuffled(rng *rand.Rand, members []Member) []Member {
	list := append([]Member(nil), members...)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
