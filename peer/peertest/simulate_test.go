package peertest_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// valley is a task: find the lowest point of a bowl of which each peer sees a noisy slope.
type valley struct{ rngs []*rand.Rand }

const bottom = 3 // of the valley, in each value

func newValley(seed uint64, peers int) *valley {
	v := &valley{}
	for i := range peers {
		v.rngs = append(v.rngs, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	return v
}

func (*valley) Params() *tensor.Params { return newModel() }

func (v *valley) Gradient(i, _ int, x, grad tensor.Vector) (peer.Result, error) {
	sum := 0.0
	for k, at := range x {
		grad[k] = at - bottom + float32(v.rngs[i].NormFloat64())
		sum += float64(grad[k]) * float64(grad[k])
	}
	return peer.Result{Loss: sum / float64(len(x)), Samples: 4}, nil
}

// Evaluate gives 1 at the bottom, and less the farther from it.
func (*valley) Evaluate(x tensor.Vector, _ bool) (accuracy, loss float64) {
	for _, at := range x {
		loss += float64(at-bottom) * float64(at-bottom) / float64(len(x))
	}
	return 1 / (1 + loss), loss
}

// simulation is one of eight peers on links that take about a step for an exchange.
func simulation(peers int) peertest.Simulation {
	return peertest.Simulation{
		Peers: peers, Task: newValley(5, peers), Schedule: optim.Schedule{Rate: 0.02},
		Work:     peer.Work{StepsPerPeer: 150},
		Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, SliceLen: 300},
		World:    peertest.World{Links: peertest.Links{Port: 1e6, Link: memnet.Link{Delay: time.Millisecond}}},
		Watch:    peertest.Watch{Points: 5},
		Seed:     1,
	}
}

func simulate(t *testing.T, s peertest.Simulation) peertest.Outcome {
	t.Helper()
	o, err := peertest.Simulate(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSimulationTakesOneCourse runs the same simulation twice, with all that can happen
// in it, and others that differ in one thing.
func TestSimulationTakesOneCourse(t *testing.T) {
	everything := func() peertest.Simulation {
		s := simulation(10)
		s.Exchange.Codec = quant.Policy{Codec: "lattice6+4"}
		s.Stall = 200 * time.Millisecond
		s.World.Compute.Slow = map[int]float64{3: 4}
		s.World.Links.Link.Loss = 0.01
		s.World.Links.Slow = map[int]float64{2: 10}
		s.World.Changes = append(peertest.Partition(200*time.Millisecond, 400*time.Millisecond, []int{0, 1, 2}, []int{5, 6, 7}),
			peertest.Change{At: 300 * time.Millisecond, Kind: peertest.Crash, Peer: 5},
			peertest.Change{At: 500 * time.Millisecond, Kind: peertest.Leave, Peer: 6},
			peertest.Change{At: 900 * time.Millisecond, Kind: peertest.Arrive, Peer: 5},
			peertest.Change{At: 700 * time.Millisecond, Kind: peertest.Arrive, Peer: 9})
		s.World.Lies = lies(t, 1, "sign-flip", 2)
		return s
	}
	one, two := simulate(t, everything()), simulate(t, everything())
	if !reflect.DeepEqual(one, two) {
		t.Errorf("the same simulation came to\n%+v\nand\n%+v", one, two)
	}
	if one.Traffic.Lost != 2 || !one.Each[5].Here || one.Each[6].Here || !one.Each[9].Here {
		t.Errorf("who came and went is not as it was written: %+v", one)
	}
	if one.Traffic.Failed == 0 {
		t.Error("no exchange failed in spite of a crash and a partition")
	}
	other := everything()
	other.Seed++
	if simulate(t, other).Digest == one.Digest {
		t.Error("another seed makes no difference")
	}
}

// TestSimulationLearns sees that a flock comes as far as the noise lets one, and nearer
// to the bottom than each peer by itself.
func TestSimulationLearns(t *testing.T) {
	together := simulate(t, simulation(8))
	s := simulation(8)
	s.Exchange.Machine = func(averaging.Config) (averaging.Machine, error) { return baseline.Alone{}, nil }
	alone := simulate(t, s)
	if together.Final.TestLoss > alone.Final.TestLoss/2 {
		t.Errorf("loss %g together, %g alone", together.Final.TestLoss, alone.Final.TestLoss)
	}
	if together.Steps != alone.Steps || together.Steps != 8*150 || together.Samples != 4*8*150 {
		t.Errorf("%d and %d steps of %d, %d samples", together.Steps, alone.Steps, 8*150, together.Samples)
	}
	if math.Abs(together.Seconds-1.5) > 0.1 {
		t.Errorf("150 steps of 10 ms took %g s: exchanges cost time", together.Seconds)
	}
	if b := together.Traffic.BitsPerParameter; b < 32 || b > 40 {
		t.Errorf("%g bits a parameter, raw", b)
	}
	if len(together.Curve) != 5 || together.Curve[0].Mean >= together.Curve[4].Mean {
		t.Errorf("the curve is %+v", together.Curve)
	}
	if alone.Traffic.Bytes != 0 || alone.Final.Consensus <= together.Final.Consensus {
		t.Errorf("alone %+v, together %+v", alone, together)
	}
}

// TestWaitingCosts: who is slow makes the work take longer by its share, and no more.
func TestStragglerSlowsNobody(t *testing.T) {
	even := simulate(t, simulation(16))
	s := simulation(16)
	s.World.Compute.Slow = map[int]float64{0: 100}
	uneven := simulate(t, s)
	if r := uneven.Seconds / even.Seconds; r > 1.1 {
		t.Errorf("a straggler of 16 makes the work take %.3f times as long", r)
	}
	if uneven.Each[0].Steps > 3 {
		t.Errorf("the straggler made %d steps", uneven.Each[0].Steps)
	}
}

// TestReplay records a run and lets others take place in the same world.
func TestReplay(t *testing.T) {
	var text bytes.Buffer
	s := simulation(6)
	s.World.Compute.Slow = map[int]float64{2: 5}
	s.World.Links.Link.Loss = 0.02
	s.World.Changes = []peertest.Change{{At: 400 * time.Millisecond, Kind: peertest.Leave, Peer: 4}}
	s.Watch.Record = &text
	first := simulate(t, s)
	replay := func(change func(*peertest.Simulation)) peertest.Outcome {
		t.Helper()
		recording, err := peertest.ReadRecording(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		again := simulation(6)
		again.World = peertest.World{Replay: recording}
		change(&again)
		return simulate(t, again)
	}
	same := replay(func(*peertest.Simulation) {})
	if !reflect.DeepEqual(first, same) {
		t.Errorf("the replay came to\n%+v\nnot to\n%+v", same, first)
	}
	coded := replay(func(s *peertest.Simulation) { s.Exchange.Codec = quant.Policy{Codec: "lattice4+1"} })
	if coded.Traffic.BitsPerParameter > 8 || coded.Each[2].Steps > first.Each[2].Steps+2 || coded.Each[4].Here {
		t.Errorf("under another codec: %+v", coded)
	}
	alone := replay(func(s *peertest.Simulation) {
		s.Exchange.Machine = func(averaging.Config) (averaging.Machine, error) { return baseline.Alone{}, nil }
	})
	if alone.Traffic.Bytes != 0 || math.Abs(alone.Seconds-first.Seconds) > 0.05 {
		t.Errorf("alone: %+v", alone)
	}
	for _, what := range []string{`"did":"step"`, `"did":"propose"`, `"did":"lose"`, `"did":"leave"`, `"did":"link"`} {
		if !strings.Contains(text.String(), what) {
			t.Errorf("no line with %s in the recording", what)
		}
	}
}

func TestBadRecordings(t *testing.T) {
	const head = `{"world":1,"peers":3}` + "\n"
	for _, text := range []string{
		"", "{}", `{"world":2,"peers":3}`, `{"world":1,"peers":-3}`, "nonsense", head + `{"did":"dance"}`,
		head + `{"did":"step","peer":3,"took":1}`, head + `{"did":"step","peer":0,"took":-1}`, head + `{"did":"crash","peer":-1}`,
		head + `{"did":"link","peer":0,"other":1,"link":{"Loss":1}}`, head + `{"did":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		if _, err := peertest.ReadRecording(strings.NewReader(text)); !errors.Is(err, peertest.ErrRecording) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestOneLiarInASimulation shows that clipping keeps a liar from doing harm.
func TestOneLiarInASimulation(t *testing.T) {
	honest := simulate(t, simulation(16))
	for name, strength := range map[string]float64{"noise": 50, "sign-flip": 10, "push": 30} {
		s := simulation(16)
		s.World.Lies = lies(t, 0, name, strength)
		if lied := simulate(t, s); lied.Final.Mean < honest.Final.Mean-0.05 {
			t.Errorf("%s, %g: %g, without %g", name, strength, lied.Final.Mean, honest.Final.Mean)
		}
	}
	if _, err := peertest.LieOf("white", 1); err == nil {
		t.Error("there are no white lies")
	}
}

// lies are those of one liar.
func lies(t *testing.T, liar int, name string, strength float64) map[int]peertest.Lie {
	t.Helper()
	lie, err := peertest.LieOf(name, strength)
	if err != nil {
		t.Fatal(err)
	}
	return map[int]peertest.Lie{liar: lie}
}

// TestBadSimulations are refused with all their faults.
func TestBadSimulations(t *testing.T) {
	s := simulation(4)
	s.Work = peer.Work{}
	s.Exchange.Codec = quant.Policy{Codec: quant.Auto}
	s.World.Compute.Slow = map[int]float64{4: 2}
	s.World.Changes = []peertest.Change{{Kind: "dance"}, peertest.Partition(0, 0, []int{1}, []int{1})[0]}
	s.World.Lies = map[int]peertest.Lie{0: nil}
	s.Watch.Points = -1
	_, err := peertest.Simulate(t.Context(), s)
	if err == nil {
		t.Fatal("a simulation without work ran")
	}
	for _, want := range []string{"Work", "Codec", "Slow", "dance", "a link of peer 1 with peer 1", "Lies", "Points"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// TestSimulateTellsWhyItEnded: what has ended its context is the error, such as a signal.
func TestSimulateTellsWhyItEnded(t *testing.T) {
	why := errors.New("somebody pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := peertest.Simulate(ctx, simulation(2)); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}
