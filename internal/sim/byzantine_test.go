package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// attack is a way to lie.
type attack struct {
	name string
	// show fills x with what a liar shows as its model, given the mean of the honest
	// ones.
	show func(rng *rand.Rand, x, mean tensor.Vector)
	// mild attacks do not ruin plain averaging either.
	mild bool
}

// trial is a flock among which some lie.
type trial struct {
	attack
	liars     []int
	codec     string // raw
	unclipped bool
	// tamper is done to what liars say and hear, if it is not nil.
	tamper func(rng *rand.Rand) sim.Tamper
}

var attacks = []attack{
	{name: "gaussian noise", show: func(rng *rand.Rand, x, _ tensor.Vector) {
		for i := range x {
			x[i] = float32(rng.NormFloat64() * 3)
		}
	}},
	{name: "sign flip x10", show: func(_ *rand.Rand, x, mean tensor.Vector) {
		for i := range x {
			x[i] = -10 * mean[i]
		}
	}},
	{name: "constant push", show: func(_ *rand.Rand, x, mean tensor.Vector) {
		for i := range x {
			x[i] = mean[i] - 3
		}
	}},
	{name: "push in a direction of its own", mild: true, show: func(_ *rand.Rand, x, mean tensor.Vector) {
		direction := rand.New(rand.NewPCG(5, 5))
		for i := range x {
			x[i] = mean[i] + float32(direction.NormFloat64()*5)
		}
	}},
}

// lied is the accuracy in percent of the mean of the honest peers of 16 that have
// learned a task among liars. A liar runs the same code as everybody, on a model
// that is replaced whenever an exchange begins.
func lied(t *testing.T, with trial) float64 {
	t.Helper()
	const peers = 16
	honest := func(peer int) bool { return !slices.Contains(with.liars, peer) }
	task := newClusters(rand.New(rand.NewPCG(61, 0)))
	rng := rand.New(rand.NewPCG(62, 0))
	shown := make(tensor.Vector, weights)
	var f *flock
	lie := func(peer int) {
		if honest(peer) || with.show == nil {
			return
		}
		with.show(rng, shown, f.mean(honest))
		if err := f.replicas[peer].RestoreShared(shown); err != nil {
			t.Fatal(err)
		}
	}
	f = newFlock(t, plan{
		seed: 63, peers: peers, values: weights, sliceLen: 100, unclipped: with.unclipped, codec: with.codec,
		initial: initialise,
		config: sim.Config{
			Task: direct{stepper: newLearners(task, 64, peers, honest)}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e7},
			Terms: replica.Terms{Window: 4},
			Hooks: sim.Hooks{Opened: func(s *sim.Stream) {
				lie(s.From())
				lie(s.To())
				if with.tamper != nil && !(honest(s.From()) && honest(s.To())) {
					s.Tamper(s.From(), with.tamper(rng))
					s.Tamper(s.To(), with.tamper(rng))
				}
			}},
		},
	})
	f.world.Run(2 * time.Second)
	return task.accuracy(f.mean(honest))
}

// mean is the mean of the chosen peers' parameters.
func (f *flock) mean(of func(peer int) bool) tensor.Vector {
	mean, n := make(tensor.Vector, len(f.scratch)), float32(0)
	for i, r := range f.replicas {
		if of(i) {
			r.Snapshot(f.scratch)
			tensor.Add(mean, f.scratch)
			n++
		}
	}
	tensor.Scale(mean, 1/n)
	return mean
}

// TestOneLiarOfSixteenDoesNoHarm lets an active and a passive peer lie in turn, and
// shows what the same lies do to plain averaging. What three of 16 do is reported with
// -tables: nothing is promised of it.
func TestOneLiarOfSixteenDoesNoHarm(t *testing.T) {
	t.Parallel()
	const most, least = 1, 10 // points of accuracy, lost with clipping and without
	active, passive := slices.Index(roles(t, 16), topology.Active), slices.Index(roles(t, 16), topology.Passive)
	for _, codec := range []string{"raw", "lattice6+4"} {
		clean := lied(t, trial{codec: codec})
		t.Logf("%s, nobody lies: %.2f %%", codec, clean)
		if clean < 90 {
			t.Fatalf("the flock has only learned to %.2f %%", clean)
		}
		for _, with := range attacks {
			t.Run(codec+"/"+with.name, func(t *testing.T) {
				lies := func(liars ...int) trial { return trial{attack: with, liars: liars, codec: codec} }
				byActive, byPassive := lied(t, lies(active)), lied(t, lies(passive))
				t.Logf("by an active: %.2f %%; by a passive: %.2f %%", byActive, byPassive)
				if lost := clean - min(byActive, byPassive); lost > most {
					t.Errorf("one of 16 costs %.2f points of %.2f %%, at most %d", lost, clean, most)
				}
				if codec != "raw" {
					return
				}
				unclipped := lies(active)
				unclipped.unclipped = true
				plain := lied(t, unclipped)
				t.Logf("plain averaging: %.2f %%", plain)
				if *tables {
					t.Logf("by three: %.2f %%", lied(t, lies(2, 7, 12)))
				}
				if lost := clean - plain; lost < least && !with.mild {
					t.Errorf("plain averaging loses only %.2f points: the attack proves nothing", lost)
				}
			})
		}
	}
}

// TestOneLiarAboutBlocksDoesNoHarm has a liar's blocks fail, its ranges be anything, and
// its model too.
func TestOneLiarAboutBlocksDoesNoHarm(t *testing.T) {
	t.Parallel()
	const most = 1 // points of accuracy
	active, passive := slices.Index(roles(t, 16), topology.Active), slices.Index(roles(t, 16), topology.Passive)
	clean := lied(t, trial{codec: "lattice6+4"})
	for _, c := range []struct {
		name   string
		tamper func(*rand.Rand) sim.Tamper
		attack attack
	}{
		{"blocks that fail", failing, attack{}},
		{"huge ranges", ranged(always(255)), attack{}},
		{"tiny ranges", ranged(always(1)), attack{}},
		{"all blocks failed", setForged(func(*rand.Rand, byte) byte { return 1 }), attack{}},
		{"huge ranges for a model of noise", ranged(always(255)), attacks[0]},
		{"blocks that fail of a model reversed", failing, attacks[1]},
	} {
		t.Run(c.name, func(t *testing.T) {
			lies := trial{attack: c.attack, codec: "lattice6+4", tamper: c.tamper}
			for _, lies.liars = range [][]int{{active}, {passive}} {
				got := lied(t, lies)
				t.Logf("%.2f %% of %.2f %%", got, clean)
				if clean-got > most {
					t.Errorf("one of 16 costs %.2f points of %.2f %%, at most %d", clean-got, clean, most)
				}
			}
		})
	}
}
