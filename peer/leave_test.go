package peer_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestWhoLeavesSettlesFirst: an exchange breaks off with slices in doubt, and one of
// the two leaves at once, be it the one that has to ask or the one that has to answer.
// Nothing is lost by that.
func TestWhoLeavesSettlesFirst(t *testing.T) {
	for _, leaver := range []string{"passive", "active"} {
		t.Run(leaver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flock := peertest.Start(t, peertest.Config{
					Peers: 2, Params: newModel, Link: memnet.Link{Delay: time.Millisecond},
					Configure: func(i int, c *peer.Config) {
						shortRun(i, c)
						c.Training.Work, c.Training.Exchange.SliceLen = peer.Work{}, cutSliceLen
					},
				})
				flock.TrainSteps(t.Context(), 10, atPace(50*time.Millisecond, towards))
				active, passive := 0, 1
				if flock.Peers[0].Stats().Role == "passive" {
					active, passive = passive, active
				}
				doubts := flock.Peers[passive]
				for bytes := int64(3000); doubts.Stats().Exchanges.InDoubt == 0; bytes += 100 {
					if bytes > 6000 {
						t.Fatal("no cut leaves anything in doubt: the test tests nothing")
					}
					flock.Network.CutAfter(flock.Peers[active].Self(), doubts.Self(), bytes)
					flock.TrainSteps(t.Context(), 1, atPace(50*time.Millisecond, towards))
				}
				leaves := map[string]int{"passive": passive, "active": active}[leaver]
				began := time.Now()
				flock.Leave(leaves)
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("leaving took %s", took)
				}
				if s := doubts.Stats().Exchanges; s.InDoubt != 0 || s.Lost != 0 || s.Settled == 0 {
					t.Errorf("%d slices in doubt, %d lost, %d settled", s.InDoubt, s.Lost, s.Settled)
				}
			})
		})
	}
}

// TestCloseTwiceAtOnce: who closes a peer that is being closed waits for that, and holds
// up nothing meanwhile, virtual time least of all.
func TestCloseTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := mergingFlock(t, 2, nil)
		go func() { // before they merge, for which each then waits
			time.Sleep(500 * time.Millisecond)
			a, b := flock.Peers[0].Self(), flock.Peers[1].Self()
			flock.Network.StallAfter(a, b, 0)
			flock.Network.StallAfter(b, a, 0)
		}()
		flock.Train(t.Context(), atPace(rivalStep, towards))
		began := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				flock.Peers[0].Close()
				if took := time.Since(began); took < mergeDeadline {
					t.Errorf("closed after %s, before it had waited for the other", took)
				}
			})
		}
		all.Wait()
	})
}
