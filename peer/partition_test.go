package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// mends waits in virtual time until a condition holds, and returns how long it took.
func mends(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Errorf("%s: not within %s", what, limit)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s: after %s", what, time.Since(began))
}

// TestACutLinkCostsOneDeadline: one link of a flock is cut. Whoever is in an exchange
// over it, or begins one, loses no more than 3 s with it at a time, and the others have
// no failures.
func TestACutLinkCostsOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{
			Peers: 8, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Swim: true,
			Configure: func(i int, c *peer.Config) {
				shortRun(i, c)
				c.Training.Work = peer.Work{}
				c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
					c.MaxInbound = 3
					return averaging.NewADPSGD(c)
				}
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		go func() {
			time.Sleep(5 * time.Second)
			frozen := flock.Peers[7].Self()
			for _, p := range flock.Peers[:7] { // as a frozen process: known to gossip a while longer
				flock.Network.StallAfter(frozen, p.Self(), 0)
			}
			before := make([]stats.Peer, 7)
			for i, p := range flock.Peers[:7] {
				before[i] = p.Stats()
			}
			for range 4 { // one deadline at a time, gossip knows of nothing yet
				time.Sleep(3 * time.Second)
				for i, p := range flock.Peers[:7] {
					s := p.Stats()
					if s.Exchanges.Completed() <= before[i].Exchanges.Completed() {
						t.Errorf("peer %d (%s) completed no exchange in 3 s", i, s.Role)
					}
					before[i] = s
				}
			}
			time.Sleep(20 * time.Second)
			if members := flock.Peers[0].Stats().Members; members != 7 {
				t.Errorf("%d members 32 s after one has frozen, want 7", members)
			}
			for _, p := range flock.Peers[:7] {
				flock.Network.Release(frozen, p.Self())
			}
			completed := flock.Peers[7].Stats().Exchanges.Completed()
			mends(t, "the frozen one is back", 30*time.Second, func() bool {
				return flock.Peers[0].Stats().Members == 8 && flock.Peers[7].Stats().Exchanges.Completed() > completed
			})
			cancel()
		}()
		flock.Train(ctx, atPace(200*time.Millisecond, towards))
		for i, p := range flock.Peers {
			if s := p.Stats(); s.Exchanges.Lost > 0 || s.Quarantined > 0 || s.Exchanges.Failed > 12 {
				t.Errorf("peer %d: %d slices lost, %d in quarantine, %d exchanges failed", i, s.Exchanges.Lost, s.Quarantined, s.Exchanges.Failed)
			}
		}
	})
}
