package peer_test

import (
	"flag"
	"math"
	"math/bits"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/swim"
)

var wide = flag.Int("wide", 0, "peers of TestWideFlock, more than 64; 200 need -timeout 30m")

// TestWideFlock: in a flock that is wide, which trains, no peer holds more connections
// than 4·log₂ n + 8, the membership's and those of its neighbours together.
func TestWideFlock(t *testing.T) {
	peers := *wide
	if peers <= swim.WideAbove {
		t.Skip("a wide flock takes minutes of computing: ask for it with -wide 72")
	}
	synctest.Test(t, func(t *testing.T) {
		const idle = 90 * time.Second // package p2pnet keeps a connection for that long at most
		flock := peertest.Start(t, peertest.Config{
			Peers: peers, Params: newModel, Swim: true, Link: memnet.Link{Delay: 10 * time.Millisecond}, Idle: idle,
			Configure: func(_ int, c *peer.Config) {
				c.Exchange.Pace.Every = 1
				c.Schedule = peer.Schedule{Rate: 0.1}
				c.Optimizer = &peer.SGD{}
			},
		})
		const settling, watched, pace = 150 * time.Second, 30 * time.Second, 10 * time.Second
		began := time.Now()
		bound, most, sum, looks := 4*math.Log2(float64(peers))+8, 0, 0, 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for time.Sleep(settling); time.Since(began) < settling+watched; time.Sleep(time.Second) {
				for _, p := range flock.Peers {
					n := p.Stats().Connections
					most, sum, looks = max(most, n), sum+n, looks+1
				}
			}
		}()
		flock.TrainSteps(t.Context(), int((settling+watched)/pace), atPace(pace, towards))
		<-done
		t.Logf("%d peers hold %.1f connections, at most %d; the bound is %.0f, of which %d are links", peers,
			float64(sum)/float64(looks), most, bound, 2*bits.Len(uint(peers-1))+1)
		if float64(most) > bound {
			t.Errorf("a peer has held %d connections, more than %.0f", most, bound)
		}
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Members != peers || s.Exchanges.Completed() == 0 {
				t.Errorf("peer %d sees %d members, and has completed %d exchanges", i, s.Members, s.Exchanges.Completed())
			}
		}
	})
}
