package sim_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// ended is what a flock ends with: each peer's accuracy without a merge, and that of the
// one model after it, in percent.
type ended struct {
	mean, worst, best float64
	merged            float64
	sent              float64 // bytes of the merge, of a peer, in models
}

// endOf trains a flock and merges it.
func (d *digits) endOf(t *testing.T, c lesson, constant bool) (e ended) {
	t.Helper()
	c.merge = true
	training := d.pupils(t, c.seed, c.epochs)
	training.constant = constant
	f := d.flock(t, c, training)
	for !training.over() {
		f.world.Run(f.world.Now() + pupilStep)
	}
	x := make(tensor.Vector, d.model.Layout().Len())
	e.worst = 100
	for _, r := range f.replicas {
		r.Snapshot(x)
		one := d.accuracy(x)
		e.mean, e.worst, e.best = e.mean+one/pupilPeers, min(e.worst, one), max(e.best, one)
	}
	before := f.total().Sent
	f.comeToRest()
	e.sent = float64(f.total().Sent-before) / pupilPeers / float64(tensor.ValueSize*len(x))
	all := make(tensor.Vector, len(x))
	f.replicas[0].Snapshot(all)
	for i, r := range f.replicas {
		if r.Snapshot(x); tensor.SquaredDistance(all, x) != 0 {
			t.Errorf("peer %d has another model than peer 0", i)
		}
	}
	e.merged = d.accuracy(all)
	return e
}

// TestFinalMergeIsWorthIt: where peers have other labels and exchange seldom, the mean of
// their models knows more than any of them, while they are still apart. A rate that falls
// to zero over a longer training brings them together by itself; the table has that too.
func TestFinalMergeIsWorthIt(t *testing.T) {
	t.Parallel()
	const worth = 2 // points of accuracy, in a short training
	if testing.Short() {
		t.Skip("left out by -short: trains for some seconds")
	}
	seeds := []uint64{1, 2, 3}
	if !*tables {
		seeds = seeds[:1]
	}
	if gain := worthOf(t, seeds, 1, false); gain < worth {
		t.Errorf("the merge is worth %.2f points, want %d", gain, worth)
	}
	if *tables {
		worthOf(t, seeds, 4, false)
		worthOf(t, seeds, 4, true)
	}
}

// worthOf trains on labels by Dirichlet 0.1, with an exchange every 16 steps, and returns by
// how much the merged model is better than the mean peer.
func worthOf(t *testing.T, seeds []uint64, epochs int, constant bool) (gain float64) {
	t.Helper()
	t.Logf("epochs %d, constant rate %v", epochs, constant)
	t.Log("| seed | merged | mean peer | worst | best | models sent by a peer for it |")
	for _, seed := range seeds {
		d := loadCut(t, dataset.Shard{Alpha: 0.1}, seed)
		e := d.endOf(t, lesson{seed: seed, epochs: epochs, pace: averaging.Pace{Every: 16}, policy: quant.Policy{Codec: "lattice8+4"}}, constant)
		t.Logf("| %d | %.2f | %.2f | %.2f | %.2f | %.2f |", seed, e.merged, e.mean, e.worst, e.best, e.sent)
		if e.sent > 2.2 {
			t.Errorf("seed %d: the merge took %.2f models of each peer, want 2(n-1)/n", seed, e.sent)
		}
		gain += (e.merged - e.mean) / float64(len(seeds))
	}
	t.Logf("%.2f points on average", gain)
	return gain
}
