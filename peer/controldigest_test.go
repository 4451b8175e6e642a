package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
)

// Every member knows what all others are about, as they say it themselves, and those
// who have gone are left out.
func TestDigestsTellOfEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, func(_ int, c *peer.Config) { c.Training.Exchange.Pace.Every = 1 })
		for i := range r.Peers {
			r.trainAt(i, stepTime+time.Duration(i)*stepTime/64) // in step, nobody might ever find its partner busy
		}
		time.Sleep(20 * time.Second)
		refused := uint64(0)
		for i, p := range r.Peers {
			refused += p.Stats().Exchanges.Refused
			digests := p.Digests()
			if len(digests) != 8 {
				t.Fatalf("peer %d has %d digests", i, len(digests))
			}
			all, counted := uint64(0), uint64(0)
			for k, d := range digests {
				counted += d.Exchanges
				if k > 0 && d.ID <= digests[k-1].ID {
					t.Error("digests are out of order")
				}
				if d.State != control.Training || d.Steps < 1000 || d.FlockSteps < 8000 || d.Exchanges == 0 || math.IsNaN(d.Loss) || d.ConsensusDistance <= 0 {
					t.Errorf("peer %d has %+v", i, d)
				}
				if d.Failed != 0 { // proposals that were refused are no failures
					t.Errorf("peer %d: %s tells of %d exchanges that failed", i, d.ID.Short(), d.Failed)
				}
				if d.Samples < 80 || d.Samples > 120 { // one a step, a step each 10 ms
					t.Errorf("peer %d: %s learns from %v samples a second", i, d.ID.Short(), d.Samples)
				}
				var began uint64
				for _, m := range d.Partners {
					if m.Partner == "" || m.Partner == d.ID {
						t.Errorf("peer %d: %s has met %+v", i, d.ID.Short(), m)
					}
					began += m.Exchanges
				}
				all += began
				if began > d.Exchanges {
					t.Errorf("peer %d: %s began %d exchanges of %d", i, d.ID.Short(), began, d.Exchanges)
				}
				if age := time.Since(d.Received); age > control.DefaultDigests+time.Second {
					t.Errorf("peer %d: the digest of %s is %v old", i, d.ID.Short(), age)
				}
			}
			if ratio := float64(all) / float64(counted); ratio < 0.45 || ratio > 0.55 { // both sides count an exchange, one begins it
				t.Errorf("peer %d: %d exchanges with partners, %d counted", i, all, counted)
			}
		}
		if refused == 0 {
			t.Error("no proposal was refused: nothing is shown of how they are counted")
		}
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(2 * control.DefaultDigests)
		for _, d := range r.Peers[1].Digests() {
			if d.State != control.Paused || d.Samples > 80 {
				t.Errorf("in a pause: %+v", d)
			}
		}
		r.Peers[7].Close()
		time.Sleep(time.Second)
		if n := len(r.Peers[0].Digests()); n != 7 {
			t.Errorf("%d digests after one has gone", n)
		}
		r.end()
	})
}
