package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// The gradient of a wide layer is the product of factors with so many rows.
const wideIn, wideOut, wideRows, wideSteps = 150, 100, 6, 20

// wide has gradients that are products, and keeps the models at which it is asked for the last of them.
type wide struct {
	*slope
	last []tensor.Vector
}

func (w *wide) random(peer, step, n int) tensor.Vector {
	rng := rand.New(rand.NewPCG(uint64(peer), uint64(step)))
	v := make(tensor.Vector, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func (w *wide) factors(peer, step int) sim.Factors {
	both := w.random(peer, step, wideRows*(wideIn+wideOut))
	return sim.Factors{Inputs: both[:wideRows*wideIn], Errors: both[wideRows*wideIn:]}
}

func (w *wide) Gradient(_, peer, step int, x, grad []float32) (loss float64, samples int, err error) {
	if step == wideSteps {
		w.last[peer] = append(tensor.Vector(nil), x...)
	}
	f := w.factors(peer, step)
	new(tensor.Multiplier).MatMul(tensor.NewMatrix(wideOut, wideIn, grad[:wideOut*wideIn]), 1,
		tensor.NewMatrix(wideRows, wideOut, f.Errors).T(), tensor.NewMatrix(wideRows, wideIn, f.Inputs), 0)
	copy(grad[wideOut*wideIn:], f.Errors)
	return 0, wideRows, nil
}

// factored is a wide whose factors are told.
type factored struct {
	*wide
	world **sim.World
}

func (f factored) Factors(peer int) []sim.Factors {
	return []sim.Factors{f.factors(peer, (*f.world).Counts(peer).Steps)}
}

// TestPushesInFactors: a flock whose workers push factors has the models of one whose workers push gradients, but for rounding, and
// sends as many times fewer bytes of pushes as there are fewer numbers. Each server has a part of the rows, and all inputs.
func TestPushesInFactors(t *testing.T) {
	t.Parallel()
	const peers, values = 4, wideOut * (wideIn + 1)
	run := func(servers int, codecName string, told bool) (models []tensor.Vector, sent float64) {
		layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{wideOut, wideIn}}, tensor.Spec{Name: "bias", Shape: []int{wideOut}, Kind: tensor.Bias})
		if err != nil {
			t.Fatal(err)
		}
		codec, _ := coding.ByName(codecName)
		task, f := &wide{newSlope(peers, values), make([]tensor.Vector, peers)}, &flock{t: t, scratch: make(tensor.Vector, values)}
		config := sim.Config{Task: task, Link: sim.Link{Delay: time.Millisecond}, Terms: replica.Terms{Plan: coding.Uniform(codec)}, Rand: rand.New(rand.NewPCG(1, 1))}
		if told {
			config.Task = factored{task, &f.world}
		}
		config.Hooks.Broke = func(peer, partner int, err error) { t.Errorf("peer %d with %d: %v", peer, partner, err) }
		for i := range peers {
			f.add(tensor.NewParams(layout), plan{}, i)
			machine, err := baseline.NewParamServers(baseline.Config{Self: nameOf(i)}, make([]topology.PeerID, servers), baseline.BSP{})
			if err != nil {
				t.Fatal(err)
			}
			config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: averaging.Machine(machine), Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: descending{task.slope, i}})
		}
		if f.world, err = sim.New(config); err != nil {
			t.Fatal(err)
		}
		for f.total().Steps < (wideSteps+1)*peers {
			if f.world.Run(f.world.Now() + time.Millisecond); f.world.Now() > time.Minute {
				t.Fatalf("%+v in a minute", f.total())
			}
		}
		return task.last, float64(f.total().Sent) / (wideSteps + 1)
	}
	for _, c := range []struct {
		servers int
		codec   string
		fewer   float64 // times: rows·(in + out/servers) for in·out/servers, and the biases as they are
	}{
		{1, "raw", float64(wideOut*wideIn+wideOut) / (wideRows*(wideIn+wideOut) + wideOut)},
		{2, "raw", float64(wideOut*wideIn/2+wideOut/2) / (wideRows*(wideIn+wideOut/2) + wideOut/2)},
		{1, "bf16", 1},
	} {
		t.Run(fmt.Sprintf("%s to %d", c.codec, c.servers), func(t *testing.T) {
			want, many := run(c.servers, c.codec, false)
			got, few := run(c.servers, c.codec, true)
			for i := range want {
				if d := math.Sqrt(tensor.SquaredDistance(got[i], want[i])); d > 1e-5*tensor.Norm2(want[i]) || want[i] == nil {
					t.Errorf("the model of peer %d is %g from one of norm %g", i, d, tensor.Norm2(want[i]))
				}
			}
			pulled := many / 2 // each worker pulls as much as it pushes
			if times := (many - pulled) / (few - pulled); times < 0.9*c.fewer || times > 1.1*c.fewer {
				t.Errorf("%.0f bytes a step, and %.0f in factors: pushes of %.2f times fewer, want %.2f", many, few, times, c.fewer)
			}
		})
	}
}
