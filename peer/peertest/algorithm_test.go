package peertest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestOwnAlgorithmOverLoopback: what ExampleSimulate_algorithm runs in virtual time, real
// peers run too.
func TestOwnAlgorithmOverLoopback(t *testing.T) {
	t.Parallel()
	flock := peertest.Start(t, peertest.Config{
		Peers: 4, Params: newModel, Loopback: true,
		Configure: func(i int, c *peer.Config) {
			slowLearner(i, c)
			c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) { return &gossip{Config: c}, nil }
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
	// How far apart training keeps the models, 35 without exchanges, is how many steps an
	// exchange takes. Once nobody pulls any more, exchanges bring them together.
	for round := 0; flock.Spread() > 5; round++ {
		if round == 50 {
			t.Fatalf("the models are %g apart", flock.Spread())
		}
		flock.TrainSteps(t.Context(), 20, rest)
	}
	late, cut := uint64(0), uint64(0)
	for i, p := range flock.Peers {
		tallies := p.Counters()
		for _, broken := range []map[string]uint64{tallies.Failed, tallies.Dropped} {
			late, cut = late+broken["time"], cut+broken["cut"]
			delete(broken, "time")
			delete(broken, "cut")
			if len(broken) > 0 {
				t.Errorf("peer %d: exchanges broke off: %v", i, broken)
			}
		}
	}
	if cut > late { // who has waited for seconds on a busy machine gives up, and cuts the other short
		t.Errorf("%d exchanges were cut short, and %d were late", cut, late)
	}
}

// rest leaves a model where it is, for a hundredth of a second.
func rest(int, tensor.Vector, tensor.Vector) (peer.Result, error) {
	time.Sleep(10 * time.Millisecond)
	return peer.Result{}, nil
}
