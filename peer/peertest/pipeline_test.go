package peertest_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

var pipelineSeeds = flag.Uint64("pipelines", 1, "how many pipelines have members that die")

// directions are what peers of pipelines under test learn: which of four directions each lies nearest to.
type directions struct {
	plan pipeline.Plan
	rngs []*rand.Rand
}

const rowsOfMicroBatch = 8

func newDirections(t *testing.T, peers int, cuts ...int) *directions {
	t.Helper()
	model, err := nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)).Build(8)
	if err != nil {
		t.Fatal(err)
	}
	p := &directions{}
	if p.plan, err = pipeline.Cut(model, nn.CrossEntropy(), cuts...); err != nil {
		t.Fatal(err)
	}
	for i := range peers {
		p.rngs = append(p.rngs, rand.New(rand.NewPCG(uint64(i), 5)))
	}
	return p
}

func draw(rng *rand.Rand, n int) (x, y tensor.Vector) {
	for range n {
		row := make(tensor.Vector, 8)
		for c := range row {
			row[c] = float32(rng.NormFloat64())
		}
		x = append(x, row...)
		y = append(y, float32(nn.Argmax(tensor.Vector{row[0] + row[1]*row[2], row[3] - row[4], row[5]*row[0] + row[6], row[7] - row[2]})))
	}
	return x, y
}

func (p *directions) Params() *tensor.Params { return p.plan.Whole.Init(3) }

func (p *directions) Rows(i int) (x, y tensor.Vector, err error) {
	x, y = draw(p.rngs[i], rowsOfMicroBatch)
	return x, y, nil
}

func (p *directions) Gradient(int, int, tensor.Vector, tensor.Vector) (peer.Result, error) {
	return peer.Result{}, errors.New("no peer has the whole model")
}

func (p *directions) Evaluate(x tensor.Vector, _ bool) (accuracy, loss float64) {
	in, labels := draw(rand.New(rand.NewPCG(77, 77)), 2000)
	out := make(tensor.Vector, 4*len(labels))
	p.plan.Whole.Predict(x, out, in)
	for i, label := range labels {
		if nn.Argmax(out[4*i:4*i+4]) == int(label) {
			accuracy += 1 / float64(len(labels))
		}
	}
	return accuracy, p.plan.Loss.Gradient(make(tensor.Vector, len(out)), out, labels, 1) / float64(len(labels))
}

// passing is a world of so many peers, three to a stage of three if nothing else is said, whose stages take 240 ms for the
// eight micro-batches of a step.
func passing(t *testing.T, peers int, cuts ...int) peertest.Simulation {
	task := newDirections(t, peers, cuts...)
	even := slices.Repeat([]time.Duration{240 * time.Millisecond}, len(task.plan.Stages))
	return peertest.Simulation{
		Peers: peers, Task: task, Schedule: optim.Schedule{Rate: 0.5}, Work: peer.Work{Steps: uint64(80 * peers)},
		Optimizer: func() optim.Optimizer { return &optim.SGD{} },
		Exchange:  peer.Exchange{Pace: averaging.Pace{Every: 1}},
		Pipeline:  &peertest.Pipeline{Plan: task.plan, Examples: rowsOfMicroBatch, Batch: 8, StepTimes: even},
		World:     peertest.World{Links: peertest.Links{Port: 125e6}, Compute: peertest.Compute{Jitter: 0.1}},
	}
}

// simulated runs a simulation, of which all micro-batches are accounted for.
func simulated(t *testing.T, s peertest.Simulation) peertest.Outcome {
	t.Helper()
	o, err := peertest.Simulate(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	all := []peertest.MicroBatches{o.Rows}
	for _, stage := range o.Stages {
		all = append(all, stage.MicroBatches)
	}
	for i, m := range all {
		if m.Came != m.Done+m.Lost+m.Here || m.Done == 0 {
			t.Errorf("%d: %+v do not add up", i-1, m)
		}
	}
	for i := range o.Stages[1:] { // who is sent on is computed behind, once for each sending
		if here, behind := o.Stages[i].MicroBatches, o.Stages[i+1].MicroBatches; behind.Done+here.Lost < here.Done {
			t.Errorf("stage %d has back %d, and %d were computed behind", i+1, here.Done, behind.Done)
		}
	}
	return o
}

// TestAPipelineInVirtualTime: the same seed gives the same, micro-batches go through all stages, and these are busy.
func TestAPipelineInVirtualTime(t *testing.T) {
	for _, cuts := range [][]int{{1}, {1, 2}, {1, 2, 3}} {
		for _, members := range []int{1, 3} {
			stages := len(cuts) + 1
			o := simulated(t, passing(t, members*stages, cuts...))
			if again := simulated(t, passing(t, members*stages, cuts...)); again.Digest != o.Digest || again.Rows != o.Rows || again.Seconds != o.Seconds {
				t.Errorf("the same again takes %v s, not %v; %+v for %+v", again.Seconds, o.Seconds, again.Rows, o.Rows)
			}
			parameters := 0
			for i, s := range o.Stages {
				parameters += s.Parameters
				t.Logf("%d of %d, %d members: busy %.3f", i+1, stages, members, s.Busy)
				if s.Busy < 0.85 || s.Busy > 1 || s.Holders != members {
					t.Errorf("stage %d of %d is busy for %.3f of the time, with %d holders", i+1, stages, s.Busy, s.Holders)
				}
			}
			if n := newDirections(t, 1).plan.Whole.Layout().Len(); parameters != n || o.Samples != o.Rows.Done*rowsOfMicroBatch {
				t.Errorf("stages have %d parameters, the model %d; %d samples of %d micro-batches", parameters, n, o.Samples, o.Rows.Done)
			}
			if o.Final.Mean < 0.6 {
				t.Errorf("accuracy %.3f", o.Final.Mean)
			}
		}
	}
}

// TestAStragglerInVirtualTime: one of three members of the second stage is ten times slower. Where micro-batches go along fixed
// chains, whose members average their gradients in rounds, everybody waits for it.
func TestAStragglerInVirtualTime(t *testing.T) {
	took := func(slow, chains bool) float64 {
		s := passing(t, 9, 1, 2)
		for i := range s.Pipeline.StepTimes {
			s.Pipeline.StepTimes[i] = 96 * time.Millisecond // so that nobody takes the straggler for silent, and sends it again what it has
		}
		if slow {
			s.World.Compute.Slow = map[int]float64{4: 10}
		}
		if s.Pipeline.Chains = chains; chains {
			s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
				return baseline.NewAllReduce(baseline.Config{Self: c.Self})
			}
		}
		o := simulated(t, s)
		return o.Seconds / float64(o.Samples)
	}
	routed, chained := took(true, false)/took(false, false), took(true, true)/took(false, true)
	t.Logf("a straggler costs %.2f ×, in fixed chains %.2f ×", routed, chained)
	if routed > 1.5 || chained < 5 {
		t.Errorf("a straggler costs %.2f ×, want at most 1.5; in fixed chains %.2f ×, want at least 5", routed, chained)
	}
}

// TestMembersDieInVirtualTime: one of twelve dies each minute, and comes back half a minute later; then the last member of every
// stage.
func TestMembersDieInVirtualTime(t *testing.T) {
	const minutes = 10
	for seed := range *pipelineSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			learn := func(disturbed bool) peertest.Outcome {
				s := passing(t, 12, 1, 2)
				s.Seed = seed
				for i := range s.Pipeline.StepTimes {
					s.Pipeline.StepTimes[i] *= 10 // 2.4 s
				}
				s.Work.Steps = 12 * 60 * minutes * 10 / 24
				if disturbed {
					rng := rand.New(rand.NewPCG(seed, 9))
					for m := range minutes {
						at, who := time.Duration(m)*time.Minute+time.Duration(rng.IntN(25))*time.Second, rng.IntN(12)
						s.World.Changes = append(s.World.Changes, peertest.Change{At: at, Kind: peertest.Crash, Peer: who},
							peertest.Change{At: at + 30*time.Second, Kind: peertest.Arrive, Peer: who})
					}
				}
				return simulated(t, s)
			}
			calm, stormy := learn(false), learn(true)
			t.Logf("loss %.4f in %.0f s, disturbed %.4f in %.0f s; sent again %d, %+v", calm.Final.TestLoss, calm.Seconds, stormy.Final.TestLoss, stormy.Seconds, again(stormy), stormy.Rows)
			if calm.Final.TestLoss > 0.35 || stormy.Final.TestLoss > calm.Final.TestLoss+0.02 {
				t.Errorf("loss %.4f, disturbed %.4f", calm.Final.TestLoss, stormy.Final.TestLoss)
			}
			if again(stormy) == 0 || stormy.Traffic.Lost != minutes {
				t.Errorf("%d deaths, %d micro-batches sent again", stormy.Traffic.Lost, again(stormy))
			}
		})
	}
}

func again(o peertest.Outcome) (n uint64) {
	for _, s := range o.Stages {
		n += s.Again
	}
	return n + o.Rows.Again
}

// TestTheLastMembersOfStagesDie: each stage has one member, which dies in turn; who comes takes it and goes on from a copy that
// another has kept. If nobody comes, the run ends with an error that names the stage.
func TestTheLastMembersOfStagesDie(t *testing.T) {
	world := func(deaths int) peertest.Simulation {
		s := passing(t, 3, 1, 2)
		s.Work.Steps = 3 * 700
		for i := range deaths {
			at := time.Duration(i+1) * 40 * time.Second
			s.World.Changes = append(s.World.Changes, peertest.Change{At: at, Kind: peertest.Crash, Peer: i}, peertest.Change{At: at + 10*time.Second, Kind: peertest.Arrive, Peer: i})
		}
		return s
	}
	calm, stormy := simulated(t, world(0)), simulated(t, world(3))
	t.Logf("loss %.4f in %.0f s; each member killed once %.4f in %.0f s: %+v", calm.Final.TestLoss, calm.Seconds, stormy.Final.TestLoss, stormy.Seconds, stormy.Stages)
	if stormy.Final.TestLoss > calm.Final.TestLoss+0.05 {
		t.Errorf("loss %.4f, %.4f where each died once", calm.Final.TestLoss, stormy.Final.TestLoss)
	}
	for i, s := range stormy.Stages {
		if s.Copies < 5 || s.Holders != 1 {
			t.Errorf("stage %d: %d copies, %d holders", i+1, s.Copies, s.Holders)
		}
	}
	s := world(1)
	s.World.Changes = s.World.Changes[:1]
	_, err := peertest.Simulate(t.Context(), s)
	if lost, is := errors.AsType[*pipeline.StageLostError](err); !is || lost.Stage != 0 || lost.Of != 3 {
		t.Errorf("a stage that nobody takes: %v", err)
	}
}

// TestFaultsOfAPipeline are told all at once, before anything runs.
func TestFaultsOfAPipeline(t *testing.T) {
	s := passing(t, 3, 1, 2)
	s.Peers, s.Pipeline.Batch, s.Pipeline.StepTimes = 2, -1, s.Pipeline.StepTimes[:1]
	_, err := peertest.Simulate(t.Context(), s)
	for _, part := range []string{"2 peers for 3 stages", "Batch -1", "StepTimes"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: want %q", err, part)
		}
	}
}
