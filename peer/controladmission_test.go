package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestOperatorOfARunWithAKey: where the run has a key, an operator that shows it is
// heard, by way of the topic too, and one that does not is not.
func TestOperatorOfARunWithAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admission := peer.Admission{RunKey: []byte("a secret that all peers of the run share")}
		r := startRuled(t, 3, func(_ int, c *peer.Config) { c.Network.Admission = admission })
		r.trainAll()
		if _, err := r.operator.Send(t.Context(), r.Peers[0].Self(), control.Command{Kind: control.Pause}); err == nil {
			t.Error("an operator without the run's key was heard")
		}
		r.operator.RunKey = admission.RunKey
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(2 * time.Second) // less than peers wait until they ask each other
		for i, p := range r.Peers {
			if s := p.Stats().Control; !s.Paused {
				t.Errorf("peer %d has not heard: %+v", i, s)
			}
		}
		r.end()
	})
}
