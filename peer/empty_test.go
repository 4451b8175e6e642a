package peer_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAnEmptyGradient counts nothing in a mean, also after one that did, and all that make updates together number the parameters alike.
func TestAnEmptyGradient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rivals()[0]
		flock := r.flock(t, func(_ int, c *peer.Config) { c.Training.Schedule = optim.Schedule{Rate: 1, Shape: optim.Constant} })
		before := flock.Models()
		const steps = 3
		var all sync.WaitGroup
		for i, p := range flock.Peers {
			all.Go(func() {
				for step := range steps {
					err := p.Step(t.Context(), func(_, grad tensor.Vector) (peer.Result, error) {
						if v := p.Version(); v != uint64(step+1) {
							t.Errorf("peer %d: step %d is made at version %d", i, step, v)
						}
						if i == step { // the last peer has something in each step, each other in all but one
							return peer.Result{Empty: true}, nil
						}
						for k := range grad {
							grad[k] = float32(i)
						}
						return peer.Result{Samples: 1 + i}, nil
					})
					if err != nil {
						t.Errorf("peer %d, step %d: %v", i, step, err)
					}
				}
			})
		}
		all.Wait()
		want := 0.0
		for step := range steps {
			sum, weight := 0.0, 0.0
			for i := range flock.Peers {
				if i != step {
					sum, weight = sum+float64(i*(1+i)), weight+float64(1+i)
				}
			}
			want += sum / weight
		}
		for i, model := range flock.Models() {
			if moved := float64(before[i][3] - model[3]); math.Abs(moved-want) > 1e-4 {
				t.Errorf("peer %d has moved by %g, want %g", i, moved, want)
			}
		}
		leaveTogether(flock)
	})
}

// TestAnEmptyGradientIsForMeans: where a step is made of each gradient, none can be made of nothing.
func TestAnEmptyGradientIsForMeans(t *testing.T) {
	for name, machine := range map[string]func(averaging.Config) (averaging.Machine, error){
		"adpsgd": nil,
		"diloco": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewDiLoCo(baseline.Config{Self: c.Self}, baseline.Outer{Every: 3, Rate: 1})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			flock := rivals()[0].flock(t, func(_ int, c *peer.Config) { c.Training.Exchange.Machine = machine })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := flock.Peers[0].Step(ctx, func(_, _ tensor.Vector) (peer.Result, error) { return peer.Result{Empty: true}, nil })
			if err == nil || flock.Peers[0].Stats().Steps > 0 {
				t.Errorf("%s: %v, %d steps", name, err, flock.Peers[0].Stats().Steps)
			}
			leaveTogether(flock)
		})
	}
}
