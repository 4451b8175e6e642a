package peer_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestRivalThatCannotSendIsTold: a trainer whose gradient cannot be sent hears of it by its
// step, whether its peer leads or not, and the others train on.
func TestRivalThatCannotSendIsTold(t *testing.T) {
	ring := rivals()[0]
	for _, loud := range victims {
		synctest.Test(t, func(t *testing.T) {
			flock := ring.flock(t, nil)
			var group sync.WaitGroup
			said := make([]error, rivalPeers)
			for i, p := range flock.Peers {
				group.Go(func() {
					for said[i] == nil && p.Stats().Steps < rivalSteps/4 {
						said[i] = p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
							r, err := atPace(rivalStep, towards)(i, x, grad)
							if i == loud {
								tensor.Scale(grad, 1e9)
							}
							return r, err
						})
					}
					if i == loud {
						flock.Leave(i)
					}
				})
			}
			group.Wait()
			for i, err := range said {
				if i != loud && err != nil {
					t.Errorf("peer %d: %v", i, err)
				}
			}
			if err := said[loud]; err == nil || !strings.Contains(err.Error(), "lower the learning rate") {
				t.Errorf("peer %d cannot send its gradient, and hears %v", loud, err)
			}
			leaveTogether(flock)
		})
	}
}
