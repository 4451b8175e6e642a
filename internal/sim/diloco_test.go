package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

func diLoCo(config baseline.Config, outer baseline.Outer) machines {
	return func(self topology.PeerID, _ int) (averaging.Machine, error) {
		config.Self = self
		return baseline.NewDiLoCo(config, outer)
	}
}

// TestDiLoCoIsItsFormula: after so many updates all peers have one model, which is that of the formula in float64: the
// mean of what the local steps of each came to, with Nesterov's momentum.
func TestDiLoCoIsItsFormula(t *testing.T) {
	const peers, values, every, updates = 5, 12, 7, 6
	for _, outer := range []baseline.Outer{{Every: every, Rate: 1}, {Every: every, Rate: 0.7, Momentum: 0.9}} {
		f := newFlock(t, plan{
			seed: 3, peers: peers, values: values, sliceLen: 5,
			machine: func(i int) averaging.Machine {
				m, err := diLoCo(baseline.Config{}, outer)(nameOf(i), i)
				if err != nil {
					t.Fatal(err)
				}
				return m
			},
			initial: func(_ *rand.Rand, _ int, x tensor.Vector) { clear(x) },
			config:  sim.Config{Task: direct{stepper: drawn{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}},
		})
		for f.world.Counts(0).Updates < updates {
			f.world.Run(f.world.Now() + time.Millisecond)
		}
		f.world.Run(f.world.Now() + 5*time.Millisecond) // all have updated, and none has made seven steps more
		x, velocity := make([]float64, values), make([]float64, values)
		for range updates {
			mean := make([]float64, values)
			for p := range peers {
				for i, v := range x {
					own := v
					for range every {
						own += 0.02 * (float64(p+i%7) - own)
					}
					mean[i] += (v - own) / peers
				}
			}
			for i, g := range mean {
				velocity[i] = outer.Momentum*velocity[i] + g
				x[i] -= outer.Rate * (g + outer.Momentum*velocity[i])
			}
		}
		models := f.models()
		for p, model := range models {
			if !slices.Equal(model, models[0]) {
				t.Errorf("%+v: peers %d and 0 have other models", outer, p)
			}
		}
		for i, want := range x {
			if got := float64(models[0][i]); math.Abs(got-want) > 1e-4 {
				t.Errorf("%+v: value %d is %g, want %g", outer, i, got, want)
			}
		}
	}
}

// models are those of all peers.
func (f *flock) models() (all []tensor.Vector) {
	for _, r := range f.replicas {
		x := make(tensor.Vector, r.Len())
		r.Snapshot(x)
		all = append(all, x)
	}
	return all
}
