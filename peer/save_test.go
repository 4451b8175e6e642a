package peer_test

import (
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

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
