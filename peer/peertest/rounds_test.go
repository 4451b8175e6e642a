package peertest_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// wholly are directions that peers with the whole model learn too, in steps of eight micro-batches. It keeps the last model that
// was evaluated.
type wholly struct {
	*directions
	last *tensor.Vector
}

func (w wholly) Gradient(i, _ int, x, grad tensor.Vector) (r peer.Result, err error) {
	m := w.plan.Whole
	f, one, out := m.Flow(rowsOfMicroBatch), make(tensor.Vector, len(x)), make(tensor.Vector, 4*rowsOfMicroBatch)
	for range 8 {
		in, y, _ := w.Rows(i)
		r.Loss += w.plan.Loss.Gradient(out, f.Forward(x, in, 0), y, 1.0/rowsOfMicroBatch) / rowsOfMicroBatch / 8
		f.Backward(x, one, out, false)
		tensor.Axpy(grad, 1.0/8, one)
	}
	r.Samples = 8 * rowsOfMicroBatch
	return r, nil
}

func (w wholly) Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64) {
	*w.last = slices.Clone(x)
	return w.directions.Evaluate(x, glance)
}

// TestRoundsAreThoseOfWholeModels: with AllReduce in each stage, and rounds, a pipeline makes of the same rows the model that data
// parallel AllReduce makes, but for rounding; without rounds it does not.
func TestRoundsAreThoseOfWholeModels(t *testing.T) {
	trained := func(peers int, rounds bool, cuts ...int) tensor.Vector {
		s := passing(t, peers, cuts...)
		var last tensor.Vector
		s.Task = wholly{s.Task.(*directions), &last}
		s.Watch.Evaluate = 1
		s.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant}
		s.Optimizer = func() optim.Optimizer { return &optim.SGD{Momentum: 0.9} }
		s.Work = peer.Work{StepsPerPeer: 30}
		s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		}
		if s.Pipeline.Rounds = rounds; len(cuts) == 0 {
			s.Pipeline = nil
		}
		s.World.Compute.Slow, s.World.Compute.Step = map[int]float64{1: 1.7}, 240*time.Millisecond
		if _, err := peertest.Simulate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return last
	}
	apart := func(a, b tensor.Vector) float64 {
		return math.Sqrt(tensor.SquaredDistance(a, b) / tensor.SumSquares(b))
	}
	for _, c := range []struct {
		peers int
		cuts  []int
	}{{4, []int{2}}, {6, []int{1, 2}}, {4, []int{1, 2, 3}}} {
		want := trained(c.peers, false)
		in, not := apart(trained(c.peers, true, c.cuts...), want), apart(trained(c.peers, false, c.cuts...), want)
		t.Logf("%d peers, cuts %v: %.2g apart, %.2g without rounds", c.peers, c.cuts, in, not)
		if in > 1e-5 || not < 1e-3 {
			t.Errorf("%d peers, cuts %v: %.2g apart, want at most 1e-5; without rounds %.2g", c.peers, c.cuts, in, not)
		}
	}
}

// TestRoundsGoOnWithoutWhoDies, before the others know it or after.
func TestRoundsGoOnWithoutWhoDies(t *testing.T) {
	for _, at := range []time.Duration{3 * time.Second, 4300 * time.Millisecond} {
		s := passing(t, 6, 1, 2)
		s.Work = peer.Work{StepsPerPeer: 30}
		s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		}
		s.Pipeline.Rounds = true
		s.World.Changes = []peertest.Change{{At: at, Kind: peertest.Crash, Peer: 4}}
		if o := simulated(t, s); o.Steps < 180 || o.Final.Mean < 0.4 || o.Stages[1].Holders != 1 {
			t.Errorf("killed at %s: %d steps, accuracy %.3f, %+v", at, o.Steps, o.Final.Mean, o.Stages)
		}
	}
}

// TestWhoComesTakesPartInRounds: one comes back to a stage that others have, and one to a stage that has lost its last member, whose
// parameters it has from a copy. Rounds go on with them, and stand still for nobody.
func TestWhoComesTakesPartInRounds(t *testing.T) {
	for name, dies := range map[string][]int{"one of a stage": {4}, "a stage's last": {1, 4}, "one of each": {0, 4, 2}} {
		for seed := range *pipelineSeeds {
			s := passing(t, 6, 1, 2)
			s.Seed = seed
			s.Schedule = optim.Schedule{Rate: 0.3, Shape: optim.Constant}
			s.Work = peer.Work{StepsPerPeer: 200}
			s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
				return baseline.NewAllReduce(baseline.Config{Self: c.Self})
			}
			s.Pipeline.Rounds = true
			at := 20 * time.Second
			for _, who := range dies {
				s.World.Changes = append(s.World.Changes, peertest.Change{At: at, Kind: peertest.Crash, Peer: who},
					peertest.Change{At: at + 40*time.Second, Kind: peertest.Arrive, Peer: who})
				at += 3 * time.Second
			}
			o := simulated(t, s)
			t.Logf("%s: %d steps in %.0f s, accuracy %.3f, rows %+v", name, o.Steps, o.Seconds, o.Final.Mean, o.Rows)
			for stage, of := range o.Stages {
				if of.Holders != 2 {
					t.Errorf("%s: stage %d has %d holders", name, stage, of.Holders)
				}
			}
			if o.Steps < 900 || o.Final.Mean < 0.6 || o.Rows.Lost > o.Rows.Came/50 || o.Seconds > 400 {
				t.Errorf("%s: %d steps in %.0f s, accuracy %.3f, %+v", name, o.Steps, o.Seconds, o.Final.Mean, o.Rows)
			}
		}
	}
}
