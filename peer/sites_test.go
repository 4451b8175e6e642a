package peer_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestPeersThatSayWhereTheyAre: two sites with a narrow and long link between. Peers exchange inside them all the time; one of
// each site does across, too, and all come near the mean of what both sites learn. Nobody blames anybody.
func TestPeersThatSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const peers, steps = 8, 480
		var mu sync.Mutex
		var inside int
		across := map[int]int{} // by the peer that began or served it
		var flock *peertest.Flock
		sites := map[transport.PeerID]int{}
		flock = peertest.Start(t, peertest.Config{
			Peers: peers, Params: newModel, Link: memnet.Link{Delay: 100 * time.Microsecond}, Seed: 7,
			Configure: func(i int, c *peer.Config) {
				shortRun(i, c)
				c.Network.Site = fmt.Sprint("site ", i%2)
				c.Training.Work = peer.Work{StepsPerPeer: steps}
				c.Training.Exchange.SliceLen = 512
				c.Training.Hooks.Exchanged = func(x peer.Exchanged) {
					mu.Lock()
					defer mu.Unlock()
					if x.Err != nil { // the flock closes; before that, Stats tell
						return
					}
					if sites[x.Partner] == i%2 {
						inside++
					} else {
						across[i]++
					}
				}
			},
		})
		ids := flock.IDs()
		mu.Lock()
		for i, id := range ids {
			sites[id] = i % 2
			for k := range i {
				if (i-k)%2 == 1 {
					flock.Network.SetLink(id, ids[k], memnet.Link{Delay: 30 * time.Millisecond, Bandwidth: 1e5})
				}
			}
		}
		mu.Unlock()
		flock.WaitJoined(peers)
		synctest.Wait()
		for i, p := range flock.Peers {
			for _, m := range p.Members() {
				if want := fmt.Sprint("site ", sites[m.ID]); m.Place.Site != want {
					t.Errorf("peer %d takes %s to be at %q, want %q", i, m.ID, m.Place.Site, want)
				}
			}
		}
		// Each at a pace of its own: in lock-step all peers drift from their site's mean at the same moments, and the last one
		// decides how far they end from it.
		flock.TrainSteps(t.Context(), steps, func(i int, x, grad tensor.Vector) (peer.Result, error) {
			return atPace(10*time.Millisecond+time.Duration(i)*137*time.Microsecond, towards)(i, x, grad)
		})
		mu.Lock()
		if all := across; len(all) != 2 || inside < 20*len(all) {
			t.Errorf("%d exchanges inside, and across by peer %v: want those of two peers, and few", inside, all)
		}
		for i, n := range across {
			if n < 3 || 10*n > inside {
				t.Errorf("peer %d took part in %d exchanges across, and there were %d inside", i, n, inside)
			}
		}
		mu.Unlock()
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Quarantined > 0 || s.Exchanges.Failed > 0 {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
		for i, model := range flock.Models() {
			if want := common + float64(peers-1)/2; math.Abs(float64(model[3])-want) > 1.5 { // alone they are up to 3.5 from it
				t.Errorf("peer %d is at %g, want about %g", i, model[3], want)
			}
		}
	})
}
