package topology

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// changes counts the decided members of before whose role differs in after,
// except those that had to become active because they cannot be reached.
func changes(before []Member, after *View) int {
	n := 0
	for _, m := range before {
		now, _ := after.Lookup(m.ID)
		if m.Role != Undecided && !m.Unreachable && now.Role != m.Role {
			n++
		}
	}
	return n
}

func withinRatio(actives, passives int) bool {
	return actives+passives < 2 || actives <= maxRatio*passives && passives <= maxRatio*actives
}

// fewestChanges tries every assignment of roles: the dumb duplicate of decide.
// It returns -1 if the members allow no assignment within the ratio.
func fewestChanges(members []Member) int {
	fewest := -1
	for set := range 1 << len(members) { // bit i: member i is active
		cost, allowed := 0, true
		for i, m := range members {
			role := Passive
			if set>>i&1 == 1 {
				role = Active
			}
			allowed = allowed && (role == Active || !m.Unreachable)
			if m.Role != Undecided && m.Role != role && !m.Unreachable {
				cost++
			}
		}
		actives := bits.OnesCount(uint(set))
		if allowed && withinRatio(actives, len(members)-actives) && (fewest < 0 || cost < fewest) {
			fewest = cost
		}
	}
	return fewest
}

// drawMembers draws a membership with ids 0, 1, ... in random states.
func drawMembers(most int) *rapid.Generator[[]Member] {
	return rapid.Custom(func(t *rapid.T) []Member {
		// Shares are drawn first, so that lopsided memberships are common.
		undecided := rapid.IntRange(0, 4).Draw(t, "undecided of 8")
		active := rapid.IntRange(0, 8).Draw(t, "active of 8")
		unreachable := rapid.SampledFrom([]int{0, 0, 1, 4, 7, 8}).Draw(t, "unreachable of 8")
		list := make([]Member, rapid.IntRange(0, most).Draw(t, "n"))
		for i := range list {
			list[i] = Member{ID: PeerID(fmt.Sprint(i)), Role: Passive}
			if rapid.IntRange(0, 7).Draw(t, "is active") < active {
				list[i].Role = Active
			}
			if rapid.IntRange(0, 7).Draw(t, "is undecided") < undecided {
				list[i].Role = Undecided
			}
			list[i].Unreachable = rapid.IntRange(0, 7).Draw(t, "is unreachable") < unreachable
		}
		return list
	})
}

// Every membership of up to seven, each member in each of its possible states.
func TestRolesChangeAsLittleAsPossible(t *testing.T) {
	states := []Member{{Role: Undecided}, {Role: Active}, {Role: Passive}, {Role: Active, Unreachable: true}}
	for n := range 8 {
		members := make([]Member, n)
		for code := range 1 << (2 * n) { // two bits for each member's state
			for i := range members {
				members[i] = states[code>>(2*i)&3]
				members[i].ID = PeerID(fmt.Sprint(i))
			}
			checkFewestChanges(t, members)
		}
	}
}

func checkFewestChanges(t *testing.T, members []Member) {
	t.Helper()
	v := mustView(t, members)
	want := fewestChanges(members)
	if want < 0 {
		for _, m := range v.Members() {
			if (m.Role == Active) != m.Unreachable {
				t.Fatalf("too few are reachable for 1:2, yet not all of them are passive: %v", v)
			}
		}
		return
	}
	if !withinRatio(v.Actives(), v.Passives()) {
		t.Fatalf("%d:%d is outside 1:2, and need not be: %v", v.Actives(), v.Passives(), v)
	}
	if got := changes(members, v); got != want {
		t.Fatalf("%d roles changed, %d suffice: %v from %v", got, want, v, members)
	}
}

func TestRolesAreDecidedAndFixed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, err := NewView(drawMembers(60).Draw(t, "members"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range v.Members() {
			if m.Role != Active && m.Role != Passive || m.Unreachable && m.Role != Active {
				t.Fatalf("%v has role %v, unreachable %v", m.ID, m.Role, m.Unreachable)
			}
		}
		again, err := NewView(v.Members())
		if err != nil {
			t.Fatal(err)
		}
		if again.String() != v.String() || again.Digest() != v.Digest() {
			t.Fatalf("no fixed point:\n%v\n%v", v, again)
		}
	})
}

// Small flocks, written out: joiners only, all active, all passive, with some
// that cannot be reached.
func TestSmallFlocks(t *testing.T) {
	nat := func(m []Member, n int) []Member {
		for i := range n {
			m[i].Unreachable = true
		}
		return m
	}
	for _, c := range []struct {
		name              string
		members           []Member
		actives, passives int
	}{
		{"nobody", nil, 0, 0},
		{"a first peer can answer", peers(1, Undecided), 0, 1},
		{"an only peer keeps its role", peers(1, Active), 1, 0},
		{"an only peer that cannot be reached", nat(peers(1, Undecided), 1), 1, 0},
		{"two newcomers", peers(2, Undecided), 1, 1},
		{"two actives", peers(2, Active), 1, 1},
		{"two passives", peers(2, Passive), 1, 1},
		{"two, one of them unreachable", nat(peers(2, Passive), 1), 1, 1},
		{"two, none reachable", nat(peers(2, Passive), 2), 2, 0},
		{"three newcomers", peers(3, Undecided), 1, 2},
		{"three actives", peers(3, Active), 2, 1},
		{"three passives", peers(3, Passive), 1, 2},
		{"four actives", peers(4, Active), 2, 2},
		{"ten actives", peers(10, Active), 6, 4},
		{"ten newcomers", peers(10, Undecided), 5, 5},
		{"hundred, ten of them reachable", nat(peers(100, Active), 90), 90, 10},
	} {
		v := mustView(t, c.members)
		if v.Actives() != c.actives || v.Passives() != c.passives {
			t.Errorf("%s: %d:%d, want %d:%d (active:passive)", c.name, v.Actives(), v.Passives(), c.actives, c.passives)
		}
	}
}

// Peers come and go one at a time. Nobody else's role changes, unless a class
// has become too small: then exactly the fewest do, by a count that tries 0, 1,
// 2, ... changes.
func TestChurnChangesTheFewestRoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, _ := NewView(nil)
		next := 0
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			members := v.Members()
			if len(members) == 0 || rapid.IntRange(0, 9).Draw(t, "join") < 6 {
				members = append(members, Member{
					ID:          PeerID(fmt.Sprint(next)),
					Unreachable: rapid.IntRange(0, 3).Draw(t, "unreachable") == 0,
				})
				next++
			} else {
				gone := rapid.IntRange(0, len(members)-1).Draw(t, "gone")
				members = append(members[:gone], members[gone+1:]...)
			}
			after, err := NewView(members)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := changes(members, after), countNeeded(members); got != want {
				t.Fatalf("%d roles changed, want %d:\nfrom %v\nto   %v", got, want, members, after)
			}
			v = after
		}
	})
}

// countNeeded is the oracle of churn, by counting alone: of the members after
// one join or leave, how many must change sides.
func countNeeded(members []Member) int {
	var count [3]int
	reachableActives := 0
	for _, m := range members {
		if m.Unreachable {
			count[Active]++
			continue
		}
		count[m.Role]++
		if m.Role == Active {
			reachableActives++
		}
	}
	if count[Undecided] == 1 {
		if count[Active] < count[Passive] {
			count[Active]++
		} else {
			count[Passive]++
		}
	}
	needed := 0
	for a, p := count[Active], count[Passive]; !withinRatio(a, p); needed++ {
		if a > p && needed == reachableActives {
			break // nobody is left who could become passive
		}
		if a > p {
			a, p = a-1, p+1
		} else {
			a, p = a+1, p-1
		}
	}
	return needed
}
