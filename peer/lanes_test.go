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
	wide := func() *tensor.Params { // 92 slices
		layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{2000, 1500}})
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
	soon(t, "an exchange is complete at both", func() bool {
		flock.TrainSteps(t.Context(), 1, idle)
		return completed.Load() >= 2
	})
	if n := flock.Peers[0].Stats().Connections; n < 3 || failed.Load() > 0 {
		t.Errorf("%d connections, want one for each of 3 lanes; %d exchanges failed", n, failed.Load())
	}
}
