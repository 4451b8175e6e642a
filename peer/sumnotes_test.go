package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhomATrainersSumWaitsForIsLogged: where one takes long for a step of AllReduce, the others' logs name the sum, and whom it waits for.
func TestWhomATrainersSumWaitsForIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs, text := observer.New(zap.WarnLevel)
		r := rivals()[0]
		r.machine = func(c baseline.Config) (averaging.Machine, error) {
			c.Deadline = time.Minute
			return baseline.NewAllReduce(c)
		}
		flock := r.flock(t, func(_ int, c *peer.Config) {
			c.Training.Work, c.Network.Log = peer.Work{StepsPerPeer: 1}, zap.New(logs)
		})
		slow := worker(t, flock)
		flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) {
			if i == slow {
				time.Sleep(25 * time.Second)
			}
			return towards(i, x, grad)
		})
		for _, line := range text.FilterMessage("a sum waits for members").All() {
			if fields := line.ContextMap(); fields["peer"] == string(flock.IDs()[slow]) && fields["sum"] == "step 1" && fields["why"] == "to come" {
				return
			}
		}
		t.Errorf("no line tells whom the sum waits for: %v", text.All())
	})
}
