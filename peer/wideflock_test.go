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
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/swim"
)

var wide = flag.Int("wide", 0, "peers of TestWideFlock, more than 64; 200 need -timeout 30m")

// wideBound is the most connections of a member of each class, by whether it is the smaller:
// those of its links, which the rule of the overlay bounds (docs/design/002), and
// 2·log₂ n + 7 of the membership and of anchors.
func wideBound(larger, smaller int) (bound map[bool]float64) {
	links := 2*bits.Len(uint(smaller-1)) + 1
	times := (larger + smaller - 1) / smaller
	others := 2*math.Log2(float64(larger+smaller)) + 7
	return map[bool]float64{false: float64(links) + others, true: float64(times*links) + others}
}

// TestWideFlock: in a flock that is wide, which trains, no peer holds more connections
// than wideBound has for its class.
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
				c.Training.Exchange.Pace.Every = 1
				c.Training.Schedule = optim.Schedule{Rate: 0.1}
				c.Training.Optimizer = &optim.SGD{}
			},
		})
		const settling, watched, pace = 150 * time.Second, 30 * time.Second, 10 * time.Second
		began := time.Now()
		most, sum, looks := map[string]int{}, map[string]int{}, map[string]int{} // by role
		done := make(chan struct{})
		go func() {
			defer close(done)
			for time.Sleep(settling); time.Since(began) < settling+watched; time.Sleep(time.Second) {
				for _, p := range flock.Peers {
					s := p.Stats()
					most[s.Role] = max(most[s.Role], s.Connections)
					sum[s.Role] += s.Connections
					looks[s.Role]++
				}
			}
		}()
		flock.TrainSteps(t.Context(), int((settling+watched)/pace), atPace(pace, towards))
		<-done
		size := map[string]int{}
		for _, p := range flock.Peers {
			size[p.Stats().Role]++
		}
		larger, smaller := max(size["active"], size["passive"]), min(size["active"], size["passive"])
		if larger+smaller != peers || smaller == 0 {
			t.Fatalf("of %d peers the classes are %v", peers, size)
		}
		for role, n := range size {
			bound := wideBound(larger, smaller)[n < larger]
			t.Logf("%d of %d are %s: they hold %.1f connections, %d at most; the bound is %.0f", n, peers, role,
				float64(sum[role])/float64(looks[role]), most[role], bound)
			if float64(most[role]) > bound {
				t.Errorf("a peer that is %s has held %d connections, more than %.0f", role, most[role], bound)
			}
		}
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Members != peers || s.Exchanges.Completed() == 0 {
				t.Errorf("peer %d sees %d members, and has completed %d exchanges", i, s.Members, s.Exchanges.Completed())
			}
		}
	})
}
