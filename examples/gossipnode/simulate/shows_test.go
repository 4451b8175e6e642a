package simulate

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

var tables = flag.Bool("tables", false, "make the tables of docs/MEASUREMENTS.md in full; takes minutes")

// trial runs what simulate would with these flags, changed where they cannot say it.
func trial(t *testing.T, flags string, change func(*peertest.Simulation)) peertest.Outcome {
	t.Helper()
	var s Settings
	set := pflag.NewFlagSet("simulate", pflag.ContinueOnError)
	s.Register(set)
	if err := set.Parse(strings.Fields(flags)); err != nil {
		t.Fatal(err)
	}
	world, err := s.Check(cli.Origins{})
	if err != nil {
		t.Fatal(err)
	}
	task, err := preparedOnce(t, &s).Begin(s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
	simulation, err := s.Simulation(task, world)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&simulation)
	}
	o, err := peertest.Simulate(t.Context(), simulation)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// prepared are the data that a test's last trial has read, by the test's name.
var prepared sync.Map

type preparation struct {
	of   string
	data *Simulated
}

// preparedOnce reads the data of a trial, unless the trial before in this test has read the same.
func preparedOnce(t *testing.T, s *Settings) *Simulated {
	t.Helper()
	of := fmt.Sprint(s.Peers, s.Dataset, s.Data, s.Model, s.Batch, s.GlobalBatch, s.Seed)
	if before, ok := prepared.Load(t.Name()); ok && before.(preparation).of == of {
		return before.(preparation).data
	}
	data, err := PrepareAll(t.Context(), s.Settings, s.Peers)
	if err != nil {
		t.Fatal(err)
	}
	prepared.Store(t.Name(), preparation{of, data})
	t.Cleanup(func() { prepared.Delete(t.Name()) })
	return data
}

// allReduce makes a simulation one of AllReduce.
func allReduce(s *peertest.Simulation) {
	s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
		return baseline.NewAllReduce(baseline.Config{Self: c.Self, Deadline: c.Deadline})
	}
}

// TestSlowWorker is the paper's experiment with one slow worker of 16: virtual time per
// epoch against that without.
func TestSlowWorker(t *testing.T) {
	t.Parallel()
	epochs := "0.2"
	factors := []int{100}
	if *tables {
		epochs, factors = "1", []int{2, 10, 100}
	}
	flags := "--model softmax --points 0 --evaluate 1 --link 10000,0.02 --epochs " + epochs + " " + clitest.MNIST(t)
	even, evenRing := trial(t, flags, nil), trial(t, flags, allReduce)
	t.Logf("no slow worker: adpsgd %.3f s, allreduce %.3f s", even.Seconds, evenRing.Seconds)
	for _, factor := range factors {
		slow := fmt.Sprintf("%s --slow 1=%d", flags, factor)
		adpsgd, ring := trial(t, slow, nil).Seconds/even.Seconds, trial(t, slow, allReduce).Seconds/evenRing.Seconds
		t.Logf("one of 16 is %d times slower: adpsgd takes %.3f times as long, allreduce %.1f times", factor, adpsgd, ring)
		if adpsgd > 1.1 || factor == 100 && ring < 60 {
			t.Error("want adpsgd at most 1.1, and of ×100 allreduce at least 60")
		}
	}
}

// TestHomogeneous: transferring the model takes a quarter of a step. A short run is of a slimmer
// model.
func TestHomogeneous(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains for a quarter of a minute")
	}
	const transfer = 10 * time.Millisecond / 4
	seeds, epochs, slack, hidden := []int{1}, 1, 0.2, slim
	if *tables {
		seeds, epochs, slack, hidden = []int{1, 2, 3}, 6, 0, 256
	}
	parameters := 784*hidden + hidden + hidden*10 + 10
	mbps := float64(parameters) * 32 / 1e6 / transfer.Seconds()
	shaped := func(change func(*peertest.Simulation)) func(*peertest.Simulation) {
		return func(s *peertest.Simulation) {
			if hidden == slim {
				slimmer(t, s.Task.(*simulatedTask).Simulated)
			}
			change(s)
		}
	}
	flags := fmt.Sprintf("--model mlp --points 0 --link %.0f,0.05 --epochs %d %s", mbps, epochs, clitest.MNIST(t))
	var adpsgd, ring peertest.Point
	for _, seed := range seeds {
		s := fmt.Sprintf("%s --seed %d", flags, seed)
		a, r := trial(t, s, shaped(func(*peertest.Simulation) {})), trial(t, s, shaped(allReduce))
		t.Logf("seed %d: adpsgd %.2f %% in %.2f s, allreduce %.2f %% in %.2f s, after %d and %d steps", seed,
			100*a.Final.Mean, a.Seconds, 100*r.Final.Mean, r.Seconds, a.Steps, r.Steps)
		adpsgd.Mean += 100 * a.Final.Mean / float64(len(seeds))
		ring.Mean += 100 * r.Final.Mean / float64(len(seeds))
		adpsgd.Seconds += a.Seconds
		ring.Seconds += r.Seconds
	}
	if lost := ring.Mean - adpsgd.Mean; lost > 0.5+slack {
		t.Errorf("adpsgd loses %.2f points", lost)
	}
	if adpsgd.Seconds > ring.Seconds {
		t.Errorf("adpsgd takes %.2f s, allreduce %.2f s", adpsgd.Seconds, ring.Seconds)
	}
}
