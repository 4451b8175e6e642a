package topology

import (
	"math"
	"math/rand/v2"
	"testing"
)

// places is an overlay as numbers: for each member of the view its neighbours.
func places(o *Overlay) [][]int {
	links := make([][]int, o.View().Len())
	for i := range links {
		links[i] = o.neighbours(i)
	}
	return links
}

// ring is the plain ring: active and passive take turns, and each is joined to
// the two beside it.
func ring(n int) [][]int {
	links := make([][]int, n)
	for i := range links {
		links[i] = []int{(i + 1) % n, (i + n - 1) % n}
	}
	return links
}

func variance(x []float64) float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x))
}

// choice is how an active picks the next of its links.
type choice int

const (
	cyclic  choice = iota // its links in order, from a random start
	anyLink               // a random one of its links, as in the AD-PSGD paper
	anybody               // a random passive, linked or not
)

// exchangesToMix averages pairs of scalars until their variance is 1e-6 of the
// start, and returns the exchanges per peer. An exchange counts for both ends.
// Peers are not in step: a random active is next.
func exchangesToMix(rng *rand.Rand, links [][]int, actives, passives []int, pick choice) float64 {
	n := len(links)
	x, turn := make([]float64, n), make([]int, n)
	for i := range x {
		x[i], turn[i] = rng.NormFloat64(), rng.IntN(len(links[i]))
	}
	target := variance(x) * 1e-6
	const checkEvery = 8 // exchanges between two looks at the variance
	for exchanges := 1; ; exchanges++ {
		a := actives[rng.IntN(len(actives))]
		p := links[a][turn[a]]
		switch pick {
		case cyclic:
			turn[a] = (turn[a] + 1) % len(links[a])
		case anyLink:
			turn[a] = rng.IntN(len(links[a]))
		case anybody:
			p = passives[rng.IntN(len(passives))]
		}
		mean := (x[a] + x[p]) / 2
		x[a], x[p] = mean, mean
		if exchanges%checkEvery == 0 && variance(x) <= target {
			return 2 * float64(exchanges) / float64(n)
		}
	}
}

const (
	fewSeeds = 20
	// A ring with random links scatters by 13 % from seed to seed, so that 20 seeds
	// leave its mean uncertain by 60 exchanges; 400 by 13.
	manySeeds = 400
)

// toMix is the mean of exchangesToMix over a number of seeds.
func toMix(links [][]int, actives, passives []int, pick choice, seeds int) float64 {
	sum := 0.0
	for seed := range seeds {
		sum += exchangesToMix(rand.New(rand.NewPCG(uint64(seed+1), 0)), links, actives, passives, pick)
	}
	return sum / float64(seeds)
}

// byRole lists the places of a view's actives and passives.
func byRole(v *View) (actives, passives []int) {
	for i, m := range v.Members() {
		if m.Role == Active {
			actives = append(actives, i)
		} else {
			passives = append(passives, i)
		}
	}
	return actives, passives
}

// The overlay against the plain ring, links taken in cyclic order as package
// averaging does, and at random as the AD-PSGD paper has it. Turns help the ring
// more than the overlay: they save it the many exchanges with a peer that it has
// just averaged with.
func TestMixing(t *testing.T) {
	const n = 64
	o := mustOverlay(t, peers(n, Undecided))
	actives, passives := byRole(o.View())
	links := places(o)
	var even, odd []int
	for i := 0; i < n; i += 2 {
		even, odd = append(even, i), append(odd, i+1)
	}
	overlayInTurn := toMix(links, actives, passives, cyclic, fewSeeds)
	overlayRandom := toMix(links, actives, passives, anyLink, fewSeeds)
	ringInTurn := toMix(ring(n), even, odd, cyclic, fewSeeds)
	ringRandom := toMix(ring(n), even, odd, anyLink, manySeeds)
	t.Logf("exchanges per peer to 1e-6 of the variance, n=%d: overlay %.1f in turn, %.1f at random; ring %.0f in turn, %.0f at random",
		n, overlayInTurn, overlayRandom, ringInTurn, ringRandom)
	if overlayInTurn > 30 {
		t.Errorf("the overlay takes %.1f exchanges per peer, want at most 30", overlayInTurn)
	}
	if ringInTurn <= 1000 || ringRandom <= 2000 {
		t.Errorf("a ring takes %.0f exchanges per peer in turn and %.0f at random, want more than 1000 and 2000: the yardstick is broken",
			ringInTurn, ringRandom)
	}
}

// Odd sizes and unequal classes mix nearly as fast as a random passive for each
// exchange would, which needs links from all to all.
func TestMixingOfUnequalClasses(t *testing.T) {
	for _, c := range [][2]int{{5, 4}, {7, 8}, {17, 16}, {11, 22}, {20, 44}, {44, 20}, {10, 90}, {90, 10}} {
		o := overlayOf(t, c[0], c[1])
		actives, passives := byRole(o.View())
		got := toMix(places(o), actives, passives, cyclic, fewSeeds)
		random := toMix(places(o), actives, passives, anybody, fewSeeds)
		t.Logf("%d:%d: overlay %.1f, random passive %.1f exchanges per peer", c[0], c[1], got, random)
		if got > 1.25*random {
			t.Errorf("%d:%d takes %.1f exchanges per peer, over 1.25 times the %.1f of random passives", c[0], c[1], got, random)
		}
	}
}

// In lock-step, offsets 0, 1, 2, 4, ..., 0 between equal classes (hops 1, 3, 5,
// 9, ..., 1 along the ring) give everybody the exact mean, if n is a power of two.
func TestLockStepGivesTheExactMean(t *testing.T) {
	for n := 2; n <= 1024; n *= 2 {
		o := mustOverlay(t, peers(n, Undecided))
		actives, _ := byRole(o.View())
		links := places(o)
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		start := variance(x)
		// An active's neighbours come in the order of offsets 0, +1, -1, +2, -2, ...
		order := []int{0}
		for step, k := 1, 1; step < n/2; step, k = 2*step, k+2 {
			order = append(order, k)
		}
		if n > 2 {
			order = append(order, 0)
		}
		for _, k := range order {
			met := make([]bool, n)
			for _, a := range actives {
				p := links[a][k]
				if met[p] {
					t.Fatalf("n=%d: link %d is no matching: two actives meet one passive", n, k)
				}
				met[p] = true
				mean := (x[a] + x[p]) / 2
				x[a], x[p] = mean, mean
			}
		}
		if ratio := variance(x) / start; ratio > 1e-12 {
			t.Errorf("n=%d: variance left after %d rounds is %.1e of the start", n, len(order), ratio)
		}
		if limit := int(math.Log2(float64(n))) + 1; len(order) > limit {
			t.Errorf("n=%d: %d rounds, want log2(n)+1 = %d", n, len(order), limit)
		}
	}
}
