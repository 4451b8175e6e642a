package peertest_test

import (
	"slices"
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
	few := func(p *peer.Peer) bool {
		e := p.Stats().Exchanges
		return e.Initiated < 20 || e.Served < 20
	}
	for round := 0; slices.ContainsFunc(flock.Peers, few); round++ { // on a busy machine an exchange takes many steps
		if round == 50 {
			t.Fatal("too few exchanges")
		}
		flock.TrainSteps(t.Context(), 50, pull)
	}
	if spread := flock.Spread(); spread > 5 {
		t.Errorf("the models are %g apart", spread)
	}
	for i, p := range flock.Peers {
		if e := p.Stats().Exchanges; e.Failed > 0 {
			t.Errorf("peer %d: %+v", i, e)
		}
	}
}
