package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestMergeInTheEnd: a flock that exchanges by lattices, and merges when its run is over,
// ends with the mean of its models, the same bytes at all.
func TestMergeInTheEnd(t *testing.T) {
	p := plan{
		seed: 3, peers: 7, values: 5000, sliceLen: 2000, codec: "lattice8+4", every: 4,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e7}},
		merge:  true,
	}
	f := newFlock(t, p)
	before := f.sum()
	f.world.Run(300 * time.Millisecond)
	apart := f.spread()
	f.world.Finish()
	f.world.Run(10 * time.Minute)
	if f.world.Pending() > 0 {
		t.Errorf("%d things are still to come", f.world.Pending())
	}
	first, other := make(tensor.Vector, p.values), make(tensor.Vector, p.values)
	f.replicas[0].Snapshot(first)
	for i, r := range f.replicas {
		r.Snapshot(other)
		if tensor.SquaredDistance(first, other) != 0 {
			t.Errorf("peer %d has another model than peer 0", i)
		}
	}
	if d := drift(before, f.sum()); d > 1e-5 || apart < 1e-4 {
		t.Errorf("the mean has moved by %g of itself; the models were %g apart", d, apart)
	}
}

// TestAThousandMerge shows that a thousand peers 40 ms apart end with one model, soon and at no more bytes than few.
func TestAThousandMerge(t *testing.T) {
	p := plan{
		seed: 5, peers: 1000, values: 8000, sliceLen: 2000, every: 1 << 20, merge: true, wait: 10 * time.Second,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 40 * time.Millisecond, Bandwidth: 1e7}},
	}
	f := newFlock(t, p)
	before := f.sum()
	f.world.Run(10 * time.Millisecond)
	began, sent := f.world.Now(), f.total().Sent
	f.world.Finish()
	f.world.Run(began + 5*time.Second)
	first, other := make(tensor.Vector, p.values), make(tensor.Vector, p.values)
	f.replicas[0].Snapshot(first)
	for i, r := range f.replicas {
		if r.Snapshot(other); tensor.SquaredDistance(first, other) != 0 {
			t.Fatalf("five seconds later peer %d has another model than peer 0", i)
		}
	}
	if d := drift(before, f.sum()); d > 1e-5 {
		t.Errorf("the mean has moved by %g of itself", d)
	}
	if each := float64(f.total().Sent-sent) / float64(p.peers) / float64(4*p.values); each > 2.2 { // 2, and frames
		t.Errorf("%.2f models a peer are sent", each)
	}
}

// weight is what a peer counts in the merge.
func (p plan) weight(i int) float64 {
	if !p.weighed {
		return 0
	}
	return float64(i + 1)
}

// TestMergeWeighs: in a merge a model counts as many times as its machine says, and all
// have the same bytes.
func TestMergeWeighs(t *testing.T) {
	p := plan{
		seed: 4, peers: 5, values: 3000, sliceLen: 1000, every: 1 << 20, merge: true, weighed: true,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e7}},
	}
	f := newFlock(t, p)
	want, all := make([]float64, p.values), 0.0
	for i, r := range f.replicas {
		r.Snapshot(f.scratch)
		all += p.weight(i)
		for j, x := range f.scratch {
			want[j] += p.weight(i) * float64(x)
		}
	}
	f.world.Run(10 * time.Millisecond)
	f.comeToRest()
	got := make(tensor.Vector, p.values)
	f.replicas[0].Snapshot(got)
	for j := range want {
		if d := want[j]/all - float64(got[j]); d > 1e-6 || d < -1e-6 {
			t.Fatalf("value %d is %g, the weighted mean is %g", j, got[j], want[j]/all)
		}
	}
	for i, r := range f.replicas {
		if r.Snapshot(f.scratch); tensor.SquaredDistance(got, f.scratch) != 0 {
			t.Errorf("peer %d has another model than peer 0", i)
		}
	}
}

// merging lets a machine merge at the end of the run.
func merging(t testing.TB, inner averaging.Machine, i int, weight float64, wait time.Duration) averaging.Machine {
	t.Helper()
	m, err := merge.New(merge.Config{Self: nameOf(i), Deadline: wait, Weight: weight}, inner)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPoolOfOne adopts what it has pooled, whatever was added meanwhile.
func TestPoolOfOne(t *testing.T) {
	f := newFlock(t, plan{seed: 1, peers: 1, values: 300, config: sim.Config{Task: direct{stepper: idle{}}}})
	r, want := f.replicas[0], make(tensor.Vector, 300)
	r.Snapshot(want)
	r.UseGradients()
	r.Adopt() // of no weight
	r.Pool(0)
	step := make(tensor.Vector, 300)
	for i := range step {
		step[i] = rand.New(rand.NewPCG(1, uint64(i))).Float32()
	}
	r.Add(step)
	r.Adopt()
	got := make(tensor.Vector, 300)
	if r.Snapshot(got); tensor.SquaredDistance(want, got) != 0 {
		t.Error("what was pooled alone is not what is adopted")
	}
}
