package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// fresh makes a peer anew, as a process that is started again.
func (r *race) fresh(f *flock, i int, make1 machines) sim.Member {
	f.t.Helper()
	model, err := replica.New(tensor.NewParams(f.replicas[0].Layout()), replica.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.replicas[i], f.ledgers[i] = model, replica.NewLedger(model)
	machine, err := make1(nameOf(i), i)
	if err != nil {
		f.t.Fatal(err)
	}
	return sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: asIs{}}
}

// TestAllReduceSurvivesChurn lets peers crash in the middle of a round, leave and
// come back: the others go on, and in the end all is quiet. So they do where a round has several steps.
func TestAllReduceSurvivesChurn(t *testing.T) {
	t.Run("allreduce", func(t *testing.T) { survivesChurn(t, allReduce(baseline.Config{Deadline: 2 * time.Second})) })
	t.Run("diloco", func(t *testing.T) {
		survivesChurn(t, diLoCo(baseline.Config{Deadline: 2 * time.Second}, baseline.Outer{Every: 5, Momentum: 0.9}))
	})
}

func survivesChurn(t *testing.T, ring machines) {
	r := race{
		peers: 6, batch: 32, speeds: []float64{3200},
		link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6, Loss: 0.001},
	}
	f := r.flock(t, ring)
	f.world.Run(time.Second)
	f.world.Crash(2)
	before := f.world.Counts(0).Steps
	f.world.Run(10 * time.Second)
	after := f.world.Counts(0).Steps
	t.Logf("%d rounds in a second, %d more in nine with a crash", before, after-before)
	if before < 10 || after-before < 100 {
		t.Errorf("%d rounds before the crash, %d after", before, after-before)
	}
	f.world.Leave(5)
	f.world.Run(12 * time.Second)
	if err := f.world.Arrive(2, r.fresh(f, 2, ring)); err != nil {
		t.Fatal(err)
	}
	back := f.world.Counts(2).Steps
	f.world.Run(20 * time.Second)
	if now := f.world.Counts(2).Steps; now-back < 50 {
		t.Errorf("who came back has made %d steps", now-back)
	}
	for _, i := range []int{1, 2, 3, 4} {
		if f.world.Counts(i).Steps <= after {
			t.Errorf("peer %d counts %+v", i, f.world.Counts(i))
		}
	}
	f.world.Finish()
	f.world.Run(3 * time.Hour)
	if n := f.world.Pending(); n > 0 {
		t.Errorf("%d things are still to come", n)
	}
}
