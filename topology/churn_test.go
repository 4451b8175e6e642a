package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// maxChanges is how many other peers' roles one join or leave may change, in the
// mean.
const maxChanges = 0.1

// churn replaces the members of a flock one by one, and returns the role changes
// of others per join or leave.
func churn(t testing.TB, rng *rand.Rand, n, events int, unreachable float64) float64 {
	next := 0
	joiner := func() Member {
		next++
		return Member{ID: PeerID(fmt.Sprintf("%d-%d", rng.Uint32(), next)), Unreachable: rng.Float64() < unreachable}
	}
	v := mustView(t, nil)
	for range n {
		v = mustView(t, append(v.Members(), joiner()))
	}
	changed := 0
	for range events {
		members := v.Members()
		// Sizes wander round n, never beyond half and twice of it.
		grow := rng.IntN(2) == 0
		if len(members) <= max(n/2, 2) {
			grow = true
		} else if len(members) >= 2*n {
			grow = false
		}
		if grow {
			members = append(members, joiner())
		} else {
			gone := rng.IntN(len(members))
			members = append(members[:gone], members[gone+1:]...)
		}
		v = mustView(t, members)
		changed += changes(members, v)
	}
	return float64(changed) / float64(events)
}

// One join or leave changes another peer's role in one case of ten at most, at
// every size and with some peers out of reach.
func TestChurnSeldomChangesRoles(t *testing.T) {
	const seeds = 4
	for _, share := range []float64{0, 0.2} {
		for _, n := range []int{4, 8, 16, 32, 64, 200, 1000} {
			sum := 0.0
			for seed := range uint64(seeds) {
				events := max(300, 4*n)
				if n == 1000 {
					events = 600
				}
				sum += churn(t, rand.New(rand.NewPCG(seed, uint64(n))), n, events, share)
			}
			t.Logf("n about %4d, %2.0f %% unreachable: %.4f role changes per join or leave", n, 100*share, sum/seeds)
			if sum/seeds > maxChanges {
				t.Errorf("n about %d, %.0f %% unreachable: %.3f role changes per join or leave, want at most %v", n, 100*share, sum/seeds, maxChanges)
			}
		}
	}
}

// Sequences of churn at any size up to 1,000: joins, leaves, members that become
// unreachable and reachable again. Whatever comes, every property of roles and
// links holds after each, and the fewest roles have changed.
func TestChurnAtAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 1000)).Draw(t, "n")
		share := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "unreachable")
		members := drawn(rng, n, share)
		for range rapid.IntRange(1, 8).Draw(t, "events") {
			members = disturb(t, rng, members, share)
		}
	})
	for n := 1; n <= 1000; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		members := drawn(rng, n, float64(n%5)/5)
		for range 2 {
			members = disturb(t, rng, members, 0.2)
		}
	}
}

// drawn are n joiners, a share of them unreachable.
func drawn(rng *rand.Rand, n int, unreachable float64) []Member {
	list := make([]Member, n)
	for i := range list {
		list[i] = Member{ID: PeerID(fmt.Sprint(rng.Uint64())), Unreachable: rng.Float64() < unreachable}
	}
	return list
}

// disturb decides the roles of members, lets one join, leave, vanish behind a NAT or
// come out of it, checks what follows, and returns the members after it.
func disturb(t reporter, rng *rand.Rand, members []Member, unreachable float64) []Member {
	t.Helper()
	v, err := NewView(members)
	if err != nil {
		t.Fatalf("%v", err)
	}
	members = v.Members()
	event := rng.IntN(4)
	switch at := rng.IntN(max(len(members), 1)); {
	case event == 0 || len(members) == 0:
		members = append(members, drawn(rng, 1, unreachable)...)
	case event == 1:
		members = append(members[:at], members[at+1:]...)
	default:
		members[at].Unreachable = event == 2
	}
	after, err := NewView(members)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if got, want := changes(members, after), countNeeded(members); got != want {
		t.Fatalf("%d roles changed, want %d:\nfrom %v\nto   %v", got, want, members, after)
	}
	o, err := NewOverlay(after)
	if err == nil {
		checkOverlay(t, o)
	} else if after.Passives() > 0 {
		t.Fatalf("%v of %v", err, after)
	}
	return after.Members()
}
