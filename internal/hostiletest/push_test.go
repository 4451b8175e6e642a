package hostiletest_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAPartnerThatPushesIsTold: one of eight learns nothing and walks in one direction. The others name it
// once each in their logs, and no other, though their labels differ by halves, and Stats has it first.
func TestAPartnerThatPushesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peers, steps, pace, liar = 8, 400, 50 * time.Millisecond, 0
		core, logged := observer.New(zapcore.WarnLevel)
		flock := peertest.Start(t, peertest.Config{
			Peers: peers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(_ int, c *peer.Config) {
				learner(c)
				c.Network.Log = zap.New(core)
			},
		})
		direction, random := make(tensor.Vector, newModel().Layout().Len()), rand.New(rand.NewPCG(8, 0))
		for i := range direction {
			direction[i] = float32(random.NormFloat64())
		}
		honest := lesson(peers, pace)
		flock.TrainSteps(t.Context(), steps, func(i int, x, grad tensor.Vector) (peer.Result, error) {
			if i != liar {
				return honest(i, x, grad)
			}
			time.Sleep(pace)
			copy(grad, direction)
			return peer.Result{Samples: 1}, nil
		})
		ids := flock.IDs()
		told := map[string]int{} // by whom
		for _, line := range logged.FilterMessageSnippet("pushes in one direction").All() {
			fields := line.ContextMap()
			switch by := fields["self"].(string); {
			case by == ids[liar].Short(): // to whom all others seem to push
			case fields["peer"] != string(ids[liar]):
				t.Errorf("%v names %v, which is honest, for a pull of %v", by, fields["peer"], fields["pull"])
			default:
				told[by]++
			}
		}
		for i, p := range flock.Peers {
			pulls := p.Stats().Exchanges.Biases
			met := i != liar && len(pulls) > 0 && pulls[0].Partner == ids[liar]
			if n := told[ids[i].Short()]; met != (n == 1) || len(pulls) > stats.MaxBiases {
				t.Errorf("peer %d has told of the liar %d times; it has pulls of %v", i, n, pulls)
			}
		}
		if len(told) < 2 {
			t.Errorf("%d have named the liar", len(told))
		}
	})
}
