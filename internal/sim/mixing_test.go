package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sim"
)

// mixture is how a flock of machines and replicas under test mixes.
type mixture struct {
	actives, passives int
	hidden            int // of the actives, those that nobody can reach
	churn             bool
}

// mixed is the variance of those who are there that is left when a flock is mixed.
const mixed = 1e-6

// exchanges lets a flock average until it is mixed, and returns the exchanges that each
// peer took part in, in the mean. With churn, somebody leaves or comes every tenth.
func (m mixture) exchanges(t *testing.T, seed uint64) float64 {
	t.Helper()
	n := m.actives + m.passives
	p := plan{
		seed: seed, peers: n, values: 16, sliceLen: 16, unclipped: true, hidden: m.hidden,
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 200 * time.Microsecond, Bandwidth: 1e8},
			News: sim.News{Crash: 20 * time.Millisecond, Gossip: 5 * time.Millisecond},
		},
	}
	f := newFlock(t, p)
	rng := rand.New(rand.NewPCG(seed, 3))
	start, change, away := f.variance(), 10, -1
	for f.variance() > mixed*start {
		f.world.Run(f.world.Now() + time.Millisecond)
		done := f.total().Initiated
		if f.world.Now() > time.Minute {
			t.Fatalf("after %d exchanges the variance is %g, and was %g", done, f.variance(), start)
		}
		if !m.churn || done < change {
			continue
		}
		if change += 10; away < 0 {
			away = rng.IntN(n)
			f.world.Leave(away)
		} else if err := f.world.Arrive(away, f.fresh(p, away)); err != nil {
			t.Fatal(err)
		} else {
			away = -1
		}
	}
	for i := range n {
		if c := f.world.Counts(i); c.Initiated+c.Served == 0 && !m.churn {
			t.Errorf("peer %d was never reached", i)
		}
	}
	return 2 * float64(f.total().Initiated) / float64(n)
}

// variance is that of the models of those who are there and have one.
func (f *flock) variance() float64 {
	sum, squares, count := make([]float64, len(f.scratch)), 0.0, 0.0
	for i, r := range f.replicas {
		r.Snapshot(f.scratch)
		if !f.world.Here(i) || f.scratch[0] == 0 { // gone, or a joiner that copies yet
			continue
		}
		count++
		for j, x := range f.scratch {
			sum[j] += float64(x)
			squares += float64(x) * float64(x)
		}
	}
	for _, s := range sum {
		squares -= s * s / count
	}
	return squares / count
}

// atRandom is exchanges for numbers of which a random active and a random passive are
// averaged in turn, which needs links from all to all.
func (m mixture) atRandom(seed uint64) float64 {
	rng := rand.New(rand.NewPCG(seed, 4))
	x := make([]float64, m.actives+m.passives)
	variance := func() float64 {
		sum, squares, n := 0.0, 0.0, float64(len(x))
		for _, v := range x {
			sum, squares = sum+v, squares+v*v
		}
		return squares/n - sum*sum/(n*n)
	}
	for i := range x {
		x[i] = rng.Float64()*2 - 1
	}
	start, done := variance(), 0
	for ; variance() > mixed*start; done++ {
		a, p := rng.IntN(m.actives), m.actives+rng.IntN(m.passives)
		x[a], x[p] = (x[a]+x[p])/2, (x[a]+x[p])/2
	}
	return 2 * float64(done) / float64(len(x))
}

// TestMachinesMix: machines that are not in step, on real replicas, mix as fast as the
// numbers of package topology do, at odd sizes, with unequal classes and under churn too.
func TestMachinesMix(t *testing.T) {
	t.Parallel()
	const (
		seeds = 5
		most  = 30  // exchanges per peer of 64
		worse = 1.5 // times as many as with partners at random
	)
	for _, m := range []mixture{
		{actives: 32, passives: 32},
		{actives: 5, passives: 4}, {actives: 8, passives: 7}, {actives: 17, passives: 16},
		{actives: 90, passives: 10, hidden: 90},
		{actives: 5, passives: 4, churn: true}, {actives: 8, passives: 7, churn: true}, {actives: 17, passives: 16, churn: true},
	} {
		name := fmt.Sprintf("%d:%d, churn %v", m.actives, m.passives, m.churn)
		own, random := 0.0, 0.0
		for seed := range uint64(seeds) {
			own += m.exchanges(t, seed) / seeds
			random += m.atRandom(seed) / seeds
		}
		t.Logf("%s: %.1f exchanges per peer, %.1f with partners at random", name, own, random)
		if own > worse*random || m.actives == 32 && own > most {
			t.Errorf("%s: %.1f exchanges per peer, %.1f with partners at random", name, own, random)
		}
	}
}

// halving is a machine whose exchanges have half the weight, whatever runs besides.
type halving struct{ averaging.Machine }

// Handle implements averaging.Machine.
func (m halving) Handle(now time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	before := len(actions)
	actions = m.Machine.Handle(now, e, actions)
	for i := range actions[before:] {
		actions[before+i].Overlap = min(actions[before+i].Overlap, 1)
	}
	return actions
}

// TestHub: a passive that eight actives want at once, on links where their exchanges
// overlap, brings all together with the weights that the machines negotiate. At half the
// weight each, the same exchanges drive the models apart.
func TestHub(t *testing.T) {
	grown := func(halves bool) float64 {
		f := newFlock(t, plan{
			seed: 1, peers: 9, values: 16, sliceLen: 16, unclipped: true, hidden: 8, halves: halves, inbound: averaging.MaxOverlap,
			config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 20 * time.Millisecond}},
		})
		start := f.spread()
		f.world.Run(10 * time.Second)
		all := f.total()
		t.Logf("half the weight %v: %g times as far apart after %+v", halves, f.spread()/start, all)
		if served := f.world.Counts(8).Served; served < 100 {
			t.Errorf("the hub served %d exchanges", served)
		}
		return f.spread() / start
	}
	if g := grown(false); !(g < 1e-3) {
		t.Errorf("the flock is %g times as far apart as it was, by weights that the machines agreed on", g)
	}
	if g := grown(true); g < 1e3 && !math.IsNaN(g) {
		t.Errorf("half the weight left the flock %g times as far apart: nothing is shown", g)
	}
}
