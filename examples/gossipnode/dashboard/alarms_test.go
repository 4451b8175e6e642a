package dashboard

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestAlarmsAreShown: those of this peer by all that it knows of itself, those of others by what they tell; none while
// all is well, and none once it is well again.
func TestAlarmsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, saved := newCalm(), time.Second
		b := NewBoard(c, About{Run: "digits", Self: "a", Bounds: watch.Bounds{Saved: func() (time.Duration, bool) { return saved, true }, SaveEvery: 30 * time.Second, Budget: 3600}}, nil, nil, nil)
		well := func() {
			now := time.Now()
			c.stats.Exchanges.Last, c.stats.Exchanges.Initiated, c.stats.Steps = now, 1, 5
			for i := range c.members {
				id := c.members[i].ID
				c.members[i].State = control.Training
				c.told[id] = control.Digest{State: control.Training, Received: now, Exchanged: now, Exchanges: 3, ConsensusDistance: 1, FlockSteps: c.stats.FlockSteps}
			}
		}
		shown := func() (names []string) {
			text, err := json.Marshal(b.see())
			var v struct {
				Alarms []struct{ Peer, Alarm, Text string }
			}
			if err == nil {
				err = json.Unmarshal(text, &v)
			}
			if err != nil || v.Alarms == nil {
				t.Fatalf("%v: %s", err, text)
			}
			for _, a := range v.Alarms {
				if names = append(names, a.Peer+" "+a.Alarm); a.Text == "" {
					t.Errorf("%+v", a)
				}
			}
			return names
		}
		is := func(when, want string) {
			t.Helper()
			if got := fmt.Sprint(shown()); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		well()
		is("at the beginning", "[]")
		time.Sleep(3 * time.Minute)
		well()
		d := c.told["b"]
		d.Exchanged = time.Now().Add(-3 * time.Minute)
		c.told["b"] = d
		saved, c.stats.Lost, c.stats.Exchanges.BytesSent = 2*time.Minute, 1, 4000
		is("in trouble", "[a checkpoint-old b no-exchange a over-budget a peer-lost]")
		c.stats.Control.Paused = true
		is("paused", "[b no-exchange a over-budget a peer-lost]")
		c.stats.Control.Paused = false
		time.Sleep(11 * time.Minute)
		well()
		saved = time.Second
		is("mended", "[]")
	})
}
