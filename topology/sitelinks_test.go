package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// spread are n joiners over so many sites, some of them unreachable, with uplinks of a few classes.
func spread(rng *rand.Rand, n, sites int, unreachable float64) []Member {
	list := drawn(rng, n, unreachable)
	for i := range list {
		list[i].Place = Place{Site: fmt.Sprint("site ", rng.IntN(sites)), Uplink: Uplink(rng.IntN(4))}
	}
	return list
}

// TestLinksBySite: whatever members there are at whatever sites, each link joins the classes, all members are connected, the
// view of a view is the same, and of two sites that can exchange within themselves one link joins them at most, between the
// delegates.
func TestLinksBySite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, sites := rapid.IntRange(2, 80).Draw(t, "n"), rapid.IntRange(1, 12).Draw(t, "sites")
		members := spread(rng, n, sites, rapid.SampledFrom([]float64{0, 0.2, 0.6}).Draw(t, "unreachable"))
		v, err := NewView(members)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if again, err := NewView(shuffled(rng, v.Members())); err != nil || again.String() != v.String() || again.Digest() != v.Digest() {
			t.Fatalf("%v\nseen again\n%v", v, again)
		}
		o, err := NewOverlay(v)
		if err != nil {
			if v.Passives() > 0 {
				t.Fatalf("%v", err)
			}
			return
		}
		links := places(o)
		checkConnected(t, links)
		checkNames(t, o)
		between := make(map[[2]int]int)
		for i, list := range links {
			m := v.At(i)
			for _, j := range list {
				if m.Role == v.At(j).Role || !slices.Contains(links[j], i) {
					t.Fatalf("%v and %v, %d and %d", m, v.At(j), i, j)
				}
				if apart := o.home[i] != o.home[j]; apart != slices.Contains(o.across[i], j) || apart != o.Apart(m.ID, v.At(j).ID) {
					t.Fatalf("%v and %v: apart %v", m, v.At(j), apart)
				} else if apart && i < j {
					between[[2]int{min(o.home[i], o.home[j]), max(o.home[i], o.home[j])}]++
				}
			}
		}
		for pair, links := range between {
			if links > 1 {
				t.Fatalf("%d links between %v", links, pair)
			}
		}
	})
}

// TestASiteHasBothClasses: newcomers and members that change sides make each site one that can exchange within, if it has two
// that can be reached.
func TestASiteHasBothClasses(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		list := spread(rng, 2+rng.IntN(40), 1+rng.IntN(5), 0)
		for i := range list {
			list[i].Role = Role(rng.IntN(3))
		}
		v := mustView(t, list)
		sites := map[string]*tally{}
		for _, m := range v.Members() {
			if sites[m.Place.Site] == nil {
				sites[m.Place.Site] = new(tally)
			}
			sites[m.Place.Site][m.Role]++
		}
		for name, s := range sites {
			if !withinRatio(s[Active], s[Passive]) {
				t.Errorf("%s has %d active and %d passive members", name, s[Active], s[Passive])
			}
		}
	}
}

// TestDelegatesHaveTheBestUplinks: the members that exchange across are those with the best uplinks of their class, and who
// tells of none counts as not bounded.
func TestDelegatesHaveTheBestUplinks(t *testing.T) {
	for seed, uplinks := range [][]Uplink{{3, 9, 5, 9}, {3, 0, 5, 9}, {5, 9, 3, 3}, {1, 0, 2, 3}} {
		var list []Member
		for i := range 16 {
			m := Member{ID: PeerID(fmt.Sprint("m", seed, i)), Role: Active + Role(i%2), Place: Place{Site: fmt.Sprint("s", i/8), Uplink: uplinks[i/2%4]}}
			list = append(list, m)
		}
		o := mustOverlay(t, list)
		for i, m := range o.View().Members() {
			if len(o.across[i]) > 0 && m.Place.Uplink != uplinks[1] {
				t.Errorf("of %v one of class %d exchanges across", uplinks, m.Place.Uplink)
			}
		}
	}
}

// linksOf are the links of an overlay by their ends.
func linksOf(o *Overlay) map[Edge]bool {
	links := make(map[Edge]bool)
	for e := range o.Edges() {
		links[e] = true
	}
	return links
}

// TestAJoinMovesFewLinks: while members come and go at sites, a join or leave changes the role of another member in one case
// of ten at most, and of the links of another member no more than two, no more than without sites.
func TestAJoinMovesFewLinks(t *testing.T) {
	for _, n := range []int{16, 64, 200} {
		var moved [2]float64
		for blind, sites := range []int{2, 1} {
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			v := mustView(t, spread(rng, n, sites, 0))
			roles, links, events := 0, 0, max(60, n)
			for range events {
				before := v.Members()
				old := linksOf(mustOverlay(t, before))
				if rng.IntN(2) == 0 && len(before) > n/2 {
					at := rng.IntN(len(before))
					before = append(before[:at], before[at+1:]...)
				} else {
					before = append(before, spread(rng, 1, sites, 0)...)
				}
				v = mustView(t, before)
				roles += changes(before, v)
				o := mustOverlay(t, v.Members())
				for e := range linksOf(o) {
					if _, both := old[e]; !both {
						links++ // each has taken the place of one that is gone, or is the newcomer's
					}
				}
			}
			moved[blind] = 2 * float64(links) / float64(events) / float64(v.Len())
			t.Logf("about %3d members at %d sites: %.3f roles and %.2f links of a member change with a join or leave", n, sites, float64(roles)/float64(events), moved[blind])
			if float64(roles)/float64(events) > maxChanges || sites > 1 && moved[blind] > 2 {
				t.Errorf("about %d members at %d sites: %.3f roles, at most %g, and %.2f links of a member, at most 2", n, sites, float64(roles)/float64(events), maxChanges, moved[blind])
			}
		}
		if moved[0] > moved[1] {
			t.Errorf("about %d members: %.2f links of a member move, %.2f without sites", n, moved[0], moved[1])
		}
	}
}

// TestATreeHasBetterUplinksNearerToItsRoot: of the members of a class none has a better uplink than one of a level above.
func TestATreeHasBetterUplinksNearerToItsRoot(t *testing.T) {
	v, err := Tree.View(spread(rand.New(rand.NewPCG(3, 3)), 40, 3, 0))
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOverlay(v)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(i int) int { return int(v.At(i).Place.Uplink-1) & 0xff }
	root := slices.MaxFunc(byPlace(v), func(a, b int) int { // a passive one, of the best uplink
		if p, q := v.At(a).Role == Passive, v.At(b).Role == Passive; p != q {
			return map[bool]int{true: 1, false: -1}[p]
		}
		return rate(a) - rate(b)
	})
	depth, worst := map[int]int{}, [Passive + 1]int{Active: 256, Passive: 256}
	level := []int{}
	for i := range v.Len() {
		if v.At(i).Role == Passive && rate(i) == rate(root) && len(level) == 0 {
			level = append(level, i) // the first of those
			depth[i] = 1
		}
	}
	for d := 2; len(level) > 0; d++ {
		role, least := v.At(level[0]).Role, 256
		var next []int
		for _, i := range level {
			if rate(i) > worst[role] {
				t.Errorf("level %d has an uplink of class %d below one of %d", d-1, rate(i), worst[role])
			}
			least = min(least, rate(i))
			for _, j := range o.tree[i] {
				if depth[j] == 0 {
					depth[j] = d
					next = append(next, j)
				}
			}
		}
		worst[role], level = least, next
	}
	if len(depth) != v.Len() {
		t.Errorf("%d of %d are reached from the root", len(depth), v.Len())
	}
}

// byPlace are the places of a view.
func byPlace(v *View) (places []int) {
	for i := range v.Len() {
		places = append(places, i)
	}
	return places
}
