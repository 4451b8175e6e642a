package peer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestRivalsLetPeersComeAndGo: one that leaves in good order keeps nobody waiting, and
// one that comes late takes part.
func TestRivalsLetPeersComeAndGo(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		flock := r.flock(t, nil)
		leaver := worker(t, flock)
		var pauses slowest
		came := make(chan *peer.Peer, 1)
		go func() {
			time.Sleep(rivalFate)
			flock.Leave(leaver)
			late := flock.Add()
			for {
				err := late.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
					return atPace(rivalStep, towards)(1, x, grad)
				})
				if err != nil {
					if !errors.Is(err, peer.ErrRunOver) {
						t.Error(err)
					}
					came <- late
					return
				}
			}
		}()
		flock.Train(t.Context(), pauses.watch(atPace(rivalStep, towards)))
		late := <-came
		for _, i := range flock.Living() {
			if s := flock.Peers[i].Stats(); !s.Over || i < rivalPeers && pauses.gap[i] > rivalDeadline+time.Second {
				t.Errorf("peer %d paused for %s: %+v", i, pauses.gap[i], s)
			}
		}
		if s := late.Stats(); s.Steps < rivalSteps/4 {
			t.Errorf("the latecomer has taken %d steps", s.Steps)
		}
		t.Logf("the longest pauses are %s; the latecomer took %d steps", pauses.gap, late.Stats().Steps)
		leaveTogether(flock)
	})
}
