package peer_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
)

// Somebody who only looks sees all members from any of them, as they tell it, with their
// names; and the members see nobody who looks.
func TestObserverSeesTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const peers, silent = 3, 2
		r := startRuled(t, peers, func(i int, c *peer.Config) {
			c.Network.Control.Name = fmt.Sprintf("machine %d", i)
			c.Network.SetBuild("v1")
			if i == silent {
				c.Network.Control.Digests = -1
			}
		})
		r.trainAll()
		time.Sleep(20 * time.Second)
		outside := control.Observer{Transport: r.outsider("outside"), Run: r.operator.Run}
		for _, asked := range r.Peers {
			seen, err := outside.Members(t.Context(), asked.Self())
			if err != nil || len(seen) != peers {
				t.Fatalf("%d members are seen, %v", len(seen), err)
			}
			for i, p := range r.Peers {
				one := seen[0]
				for _, s := range seen {
					if s.ID == p.Self() {
						one = s
					}
				}
				s, d := p.Stats(), one.Digest
				if one.ID != p.Self() || one.Role.String() != s.Role || one.State != control.Training || one.Steps+1500 < s.Steps {
					t.Errorf("peer %d, at step %d, is seen as %+v", i, s.Steps, one)
				}
				if told := i != silent || asked == p; told != (!d.Heard.IsZero() && d.Loss < math.Inf(1) && d.Name == fmt.Sprintf("machine %d", i) && d.Version == "v1" && time.Since(d.Exchanged) < 10*time.Second) {
					t.Errorf("peer %d tells %v: %+v", i, told, d)
				}
			}
			if s := asked.Stats(); s.Members != peers || s.Exchanges.Failed > 0 {
				t.Errorf("a member counts who looks: %+v", s)
			}
		}
		if _, err := (control.Observer{Transport: outside.Transport, Run: "other"}).Members(t.Context(), r.Peers[0].Self()); err == nil {
			t.Error("another run is told of")
		}
		r.end()
	})
}
