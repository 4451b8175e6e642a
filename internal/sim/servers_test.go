package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// toPoints are gradients towards a point of each peer's own, of as many steps as there are.
type toPoints struct {
	each int // steps of a peer
}

func (p *toPoints) Duration(peer, step, _ int) time.Duration {
	if step >= p.each {
		return time.Hour
	}
	return time.Duration(9+peer) * time.Millisecond
}

func (p *toPoints) Gradient(_, peer, step int, x, grad []float32) (loss float64, samples int, err error) {
	rng := rand.New(rand.NewPCG(uint64(peer), uint64(step)))
	for i := range grad {
		grad[i] = x[i] - rng.Float32()
	}
	return 0, 1 + rng.IntN(8), nil
}

func (p *toPoints) Progress(int) float64 { return 0 }

func (p *toPoints) Rate(int, float64) float64 { return 0.05 }

// bySeveral trains four peers with so many servers, behind a gate, and returns the flock after their steps. Its model
// has slices of several lengths, of which parts take pieces.
func bySeveral(t *testing.T, servers int, gate baseline.Gate, optimizer func() optim.Optimizer) *flock {
	t.Helper()
	const peers, each = 4, 40
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "a", Shape: []int{37, 100}}, tensor.Spec{Name: "frozen", Shape: []int{100}, Sharing: tensor.Frozen},
		tensor.Spec{Name: "b", Shape: []int{900}, Kind: tensor.Bias}, tensor.Spec{Name: "c", Shape: []int{3000}},
	)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	task := &toPoints{each: each}
	f := &flock{t: t, scratch: make(tensor.Vector, layout.Len())}
	config := sim.Config{
		Task: task, Link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e8}, Stall: time.Hour,
		Terms: replica.Terms{Plan: coding.Uniform(codec), Window: 4}, Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range peers {
		f.add(tensor.NewParams(layout), plan{sliceLen: 1000}, i)
		var machine averaging.Machine
		if servers == 0 {
			machine, err = baseline.NewParamServer(baseline.Config{Self: nameOf(i)}, gate)
		} else {
			machine, err = baseline.NewParamServers(baseline.Config{Self: nameOf(i)}, make([]topology.PeerID, servers), gate)
		}
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: optimizer()})
	}
	config.Hooks.Failed = func(peer int, err error) { t.Errorf("peer %d: %v", peer, err) }
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	f.world.Run(time.Minute)
	if all := f.total(); all.Steps != peers*each || all.Failed > 0 {
		t.Fatalf("%d servers: %+v", servers, all)
	}
	return f
}

// TestSeveralServersMakeTheSameModel: in lock-step the sums and steps of parts are those of the whole, to rounding,
// with optimizers that remember, also where one peer serves several parts.
func TestSeveralServersMakeTheSameModel(t *testing.T) {
	t.Parallel()
	optimizers := map[string]func() optim.Optimizer{
		"sgd":   func() optim.Optimizer { return &optim.SGD{Momentum: 0.9, WeightDecay: 0.1} },
		"adamw": func() optim.Optimizer { return &optim.AdamW{WeightDecay: 0.1} },
		"lion":  func() optim.Optimizer { return &optim.Lion{WeightDecay: 0.1} },
	}
	for name, optimizer := range optimizers {
		want := bySeveral(t, 0, baseline.BSP{}, optimizer)
		for _, servers := range []int{1, 2, 3, 7} {
			got := bySeveral(t, servers, baseline.BSP{}, optimizer)
			for i := range got.replicas {
				x, y := make(tensor.Vector, got.replicas[0].Len()), make(tensor.Vector, got.replicas[0].Len())
				want.replicas[0].Snapshot(x)
				got.replicas[i].Snapshot(y)
				apart, norm := tensor.SquaredDistance(x, y), tensor.SumSquares(x)
				if !(apart <= 1e-8*norm) || servers == 1 && apart != 0 || norm < 10 {
					t.Errorf("%s, %d servers: peer %d is %g apart from the model of one, of squared norm %g", name, servers, i, apart, norm)
				}
			}
		}
	}
}

// TestServersShareTheLoad: the more servers, the less the busiest peer sends; with as many as peers all send alike.
func TestServersShareTheLoad(t *testing.T) {
	t.Parallel()
	for servers := 1; servers <= 4; servers++ {
		f := bySeveral(t, servers, baseline.BSP{}, func() optim.Optimizer { return &optim.SGD{} })
		var sent [4]float64
		least, most, all := 0.0, 0.0, 0.0
		for i := range sent {
			sent[i] = float64(f.world.Counts(i).Sent)
			most, all = max(most, sent[i]), all+sent[i]
			if least == 0 || sent[i] < least {
				least = sent[i]
			}
		}
		t.Logf("%d servers: %.0f bytes sent by each, %s", servers, sent, f.world.Now())
		// A server sends its part to the three others, and its gradient to the other servers.
		k := float64(servers)
		want := (3/k + (k-1)/k) / 6 // of all
		if share := most / all; share < 0.95*want || share > 1.05*want {
			t.Errorf("%d servers: the busiest sends %.3f of all, want about %.3f", servers, share, want)
		}
		if servers == 4 && most > 1.02*least {
			t.Errorf("four servers send %.0f bytes", sent)
		}
	}
}

// TestSeveralServersAndGates: with each gate parts go on, and all make their steps.
func TestSeveralServersAndGates(t *testing.T) {
	t.Parallel()
	ssp, err := baseline.NewSSP(2)
	if err != nil {
		t.Fatal(err)
	}
	dssp, err := baseline.NewDSSP(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, gate := range map[string]baseline.Gate{"asp": baseline.ASP{}, "ssp": ssp, "dssp": dssp} {
		f := bySeveral(t, 2, gate, func() optim.Optimizer { return &optim.SGD{Momentum: 0.5} })
		x := make(tensor.Vector, f.replicas[0].Len())
		f.replicas[0].Snapshot(x)
		if mean := tensor.SumSquares(x) / float64(len(x)); mean < 0.1 || mean > 0.4 {
			t.Errorf("%s: mean square %g of values near ½", name, mean)
		}
	}
}
