package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// summed adds up what an optimizer adds to a model.
type summed struct {
	*optim.Outer
	total []float64
}

func (s *summed) Delta(grad, x tensor.Vector, rate float64) {
	s.Outer.Delta(grad, x, rate)
	for i, v := range grad {
		s.total[i] += float64(v)
	}
}

// drawn makes steps a little of the way to a target of each peer's own.
type drawn struct{ idle }

func (drawn) Step(peer, _ int, x, delta []float32) {
	for i := range delta {
		delta[i] = 0.02 * (float32(peer+i%7) - x[i])
	}
}

// TestOuterMomentumIsOnlySteps: the sum of all models moves by what optimizers add and by nothing else, over exchanges
// that are cut all the time; and the momentum does reach the models, and only where they are exchanged.
func TestOuterMomentumIsOnlySteps(t *testing.T) {
	const peers, values = 6, 40
	run := func(momentum float64, every int) (added float64) {
		var all []*summed
		f := newFlock(t, plan{
			seed: 9, peers: peers, values: values, sliceLen: 8, every: every,
			optimizer: func(int) optim.Optimizer {
				s := &summed{&optim.Outer{Inner: asIs{}, Every: 4, Momentum: momentum}, make([]float64, values)}
				all = append(all, s)
				return s
			},
			config: sim.Config{Task: direct{stepper: drawn{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}, SettleAfter: 20 * time.Millisecond},
		})
		before := f.sum()
		f.world.Run(4 * time.Second)
		f.comeToRest()
		after := f.sum()
		for i := range before {
			for _, s := range all {
				before[i] += s.total[i]
				added += math.Abs(s.total[i])
			}
		}
		if d := drift(before, after); d > 1e-5 {
			t.Errorf("momentum %g: the sum of all models is off by %g of itself", momentum, d)
		}
		return added
	}
	if with, without := run(0.5, 4), run(0, 4); with == without {
		t.Error("momentum adds nothing")
	}
	const never = 1 << 20
	if with, without := run(0.5, never), run(0, never); with != without {
		t.Errorf("without exchanges steps come to %g, %g without momentum", with, without)
	}
}
