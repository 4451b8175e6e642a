package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// slowOne takes a minute for a step at peer 0, and others ten milliseconds.
type slowOne struct{}

func (slowOne) Duration(peer, _, _ int) time.Duration {
	if peer == 0 {
		return time.Minute
	}
	return 10 * time.Millisecond
}

func (slowOne) Step(_, _ int, _, delta []float32) {
	for i := range delta {
		delta[i] = 0.01
	}
}

// alike checks that all peers have the same model.
func (f *flock) alike() {
	f.t.Helper()
	first, other := make(tensor.Vector, len(f.scratch)), make(tensor.Vector, len(f.scratch))
	f.replicas[0].Snapshot(first)
	for i, r := range f.replicas {
		if r.Snapshot(other); tensor.SquaredDistance(first, other) != 0 {
			f.t.Errorf("peer %d has another model than peer 0", i)
		}
	}
}

// TestStepsThatEndAfterTheMergeAreLost: one that was in the making when the run was over
// would set its peer apart from the model of all.
func TestStepsThatEndAfterTheMergeAreLost(t *testing.T) {
	f := newFlock(t, plan{
		seed: 3, peers: 4, values: 500, sliceLen: 200, every: 4, merge: true,
		config: sim.Config{Task: direct{stepper: slowOne{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e7}},
	})
	f.world.Run(300 * time.Millisecond)
	f.world.Finish()
	f.world.Run(10 * time.Minute)
	f.alike()
	if n := f.world.Counts(0).Steps; n != 0 {
		t.Errorf("the slow peer counts %d steps", n)
	}
}

// TestWhoArrivesInTheEndMergesToo: a peer that still copies the model when the run is over
// takes part in the merge, and nobody waits for it until a deadline.
func TestWhoArrivesInTheEndMergesToo(t *testing.T) {
	p := plan{
		seed: 3, peers: 5, values: 5000, sliceLen: 2000, every: 4, merge: true,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}},
	}
	f := newFlock(t, p)
	f.world.Run(100 * time.Millisecond)
	f.world.Crash(4)
	f.world.Run(5 * time.Second)
	if err := f.world.Arrive(4, f.fresh(p, 4)); err != nil {
		t.Fatal(err)
	}
	f.world.Run(f.world.Now() + 5*time.Millisecond) // of the 20 that its copy takes
	f.world.Finish()
	f.world.Run(f.world.Now() + 10*time.Minute)
	if f.world.Pending() > 0 {
		t.Errorf("%d things are still to come", f.world.Pending())
	}
	f.alike()
}
