package peer_test

import (
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestLanesOverLoopback: several connections carry one exchange.
func TestLanesOverLoopback(t *testing.T) {
	t.Parallel()
	wide := func() *tensor.Params { // 46 slices
		layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{1500, 1000}})
		if err != nil {
			panic(err) // the specs are constants
		}
		return tensor.NewParams(layout)
	}
	var completed, failed atomic.Int64
	flock := peertest.Start(t, peertest.Config{Peers: 2, Params: wide, Loopback: true, Configure: func(_ int, c *peer.Config) {
		c.Training.Exchange.Pace.Every, c.Training.Exchange.Lanes = 1, 3
		c.Training.Hooks.Exchanged = func(x peer.Exchanged) {
			if x.Err != nil {
				failed.Add(1)
			} else {
				completed.Add(1)
			}
		}
	}})
	soon(t, "exchanges are complete at both, by three connections", func() bool {
		flock.TrainSteps(t.Context(), 1, idle)
		return completed.Load() >= 2 && flock.Peers[0].Stats().Connections >= 3 // which are made when they are needed
	})
	if failed.Load() > completed.Load() {
		t.Errorf("%d exchanges failed, and %d did not", failed.Load(), completed.Load())
	}
}
