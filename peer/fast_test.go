package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAFastMemberOfAClosedRunCounts: with a key, what one does that is twenty times as fast as the
// three others is part of the work; without, up to twice what they do.
func TestAFastMemberOfAClosedRunCounts(t *testing.T) {
	for closed, most := range map[bool]uint64{true: 1230, false: 2000} {
		synctest.Test(t, func(t *testing.T) {
			flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Configure: func(_ int, c *peer.Config) {
				if c.Training.Work = (peer.Work{StepsPerPeer: 300}); closed {
					c.Network.Admission.RunKey = runKey
				}
			}})
			flock.WaitJoined(4)
			flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) {
				time.Sleep(map[bool]time.Duration{true: 5 * time.Millisecond, false: 100 * time.Millisecond}[i == 2])
				return peer.Result{}, nil
			})
			var taken uint64
			for _, p := range flock.Peers {
				taken += p.Stats().Steps
			}
			t.Logf("with a key %v: %d steps for 1200", closed, taken)
			if taken < 1200 || taken > most || !closed && taken < 1400 {
				t.Errorf("with a key %v: %d steps for 1200, at most %d", closed, taken, most)
			}
		})
	}
}
