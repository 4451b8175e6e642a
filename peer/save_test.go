package peer_test

import (
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// counting is an optimizer whose two vectors, and the parameters, all hold the number of
// its steps after each.
type counting struct {
	steps uint64
	a, b  tensor.Vector
}

func (o *counting) Delta(grad, _ tensor.Vector, _ float64) {
	if o.a == nil {
		o.a, o.b = make(tensor.Vector, len(grad)), make(tensor.Vector, len(grad))
	}
	o.steps++
	for i := range grad {
		o.a[i]++
		o.b[i]++
		grad[i] = 1
	}
}

func (o *counting) State() optim.State {
	s := optim.State{Kind: "counting", Steps: o.steps, Vectors: map[string]tensor.Vector{}}
	if o.a != nil {
		s.Vectors["a"], s.Vectors["b"] = o.a, o.b
	}
	return s
}

func (o *counting) Restore(optim.State) error { return nil }

// whileTraining saves a peer again and again while its trainer takes steps without rest.
func whileTraining(t *testing.T, optimizer optim.Optimizer, gradient func(step int, grad tensor.Vector), look func(*peer.Saved)) {
	t.Helper()
	p := startAlone(t, func(c *peer.Config) {
		c.Training.Optimizer, c.Training.Exchange.SliceLen = optimizer, 64
		c.Training.Schedule = optim.Schedule{Shape: optim.Constant, Rate: 1}
		clear(c.Params.Vector())
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for step := 0; step < 20_000 && !t.Failed(); step++ {
			err := p.Step(t.Context(), func(_, grad tensor.Vector) (peer.Result, error) {
				gradient(step, grad)
				return peer.Result{Samples: 1}, nil
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for saved := new(peer.Saved); ; {
		select {
		case <-done:
			return
		default:
			if err := p.SaveAll(saved); err != nil {
				t.Error(err)
			}
			look(saved)
		}
	}
}

// TestSavedStateIsOfOneMoment: parameters and the optimizer's vectors are all of the same
// step, whatever the trainer does meanwhile.
func TestSavedStateIsOfOneMoment(t *testing.T) {
	whileTraining(t, &counting{}, func(int, tensor.Vector) {}, func(s *peer.Saved) {
		want := float32(s.Optimizer.Steps)
		for name, v := range map[string]tensor.Vector{"parameters": s.Params, "a": s.Optimizer.Vectors["a"], "b": s.Optimizer.Vectors["b"]} {
			for i := range v {
				if v[i] != want {
					t.Errorf("value %d of the %s is of step %g, the optimizer of step %g", i, name, v[i], want)
					return
				}
			}
		}
	})
}

// TestANewLifeOfAdamWTakesNoLeap: gradients are rare, so that a mean copied after one and
// a square copied before it make a step of a size that no AdamW takes.
func TestANewLifeOfAdamWTakesNoLeap(t *testing.T) {
	const (
		rare = 300 // steps from one gradient of a parameter to the next, in which the square is forgotten
		most = 2   // (1−β₁)/√(1−β₂) · 1/√(1−β₁²/β₂) is 1, which no gradients exceed
	)
	whileTraining(t, &optim.AdamW{Beta2: 0.9}, func(step int, grad tensor.Vector) {
		for i := step % rare; i < len(grad); i += rare {
			grad[i] = 1
		}
	}, func(s *peer.Saved) {
		if len(s.Optimizer.Vectors) == 0 {
			return
		}
		next := &optim.AdamW{Beta2: 0.9}
		state := s.Optimizer
		state.Vectors = map[string]tensor.Vector{}
		for name, v := range s.Optimizer.Vectors {
			state.Vectors[name] = append(tensor.Vector(nil), v...)
		}
		if err := next.Restore(state); err != nil {
			t.Error(err)
			return
		}
		delta := make(tensor.Vector, len(s.Params))
		next.Delta(delta, append(tensor.Vector(nil), s.Params...), 1)
		if leap := tensor.MaxAbs(delta); leap > most {
			t.Errorf("the first step of the next life moves a parameter by %g, want %d at most", leap, most)
		}
	})
}

// TestTheMergeKeepsTheOptimizersState: that the run is over keeps the last step from being
// applied, which is no fault of what the optimizer remembers.
func TestTheMergeKeepsTheOptimizersState(t *testing.T) {
	for name, final := range map[string]*merge.Config{"merge": {Deadline: mergeDeadline}, "local": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flock := mergingFlock(t, 3, func(_ int, c *peer.Config) {
					c.Training.Optimizer, c.Training.Exchange.Final = &optim.AdamW{}, final
				})
				flock.Train(t.Context(), atPace(rivalStep, towards))
				leaveTogether(flock)
				for i, p := range flock.Peers {
					var saved peer.Saved
					if err := p.SaveAll(&saved); err != nil {
						t.Error(err)
					}
					o := saved.Optimizer
					if steps := p.Stats().Steps; o.Steps < steps || tensor.MaxAbs(o.Vectors["square"]) == 0 {
						t.Errorf("peer %d leaves after %d steps with an optimizer that remembers %d of them, squares up to %g", i, steps, o.Steps, tensor.MaxAbs(o.Vectors["square"]))
					}
				}
			})
		})
	}
}
