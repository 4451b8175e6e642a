package peertest_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestOwnAlgorithmOverLoopback: what ExampleSimulate_algorithm runs in virtual time, real
// peers run too.
func TestOwnAlgorithmOverLoopback(t *testing.T) {
	flock := peertest.Start(t, peertest.Config{
		Peers: 4, Params: newModel, Loopback: true,
		Configure: func(i int, c *peer.Config) {
			slowLearner(i, c)
			c.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) { return &gossip{Config: c}, nil }
		},
	})
	flock.TrainSteps(t.Context(), 150, pull)
	if spread := flock.Spread(); spread > 5 {
		t.Errorf("the models are %g apart", spread)
	}
	for i, p := range flock.Peers {
		if e := p.Stats().Exchanges; e.Initiated < 20 || e.Served < 20 || e.Failed > 0 {
			t.Errorf("peer %d: %+v", i, e)
		}
	}
}
