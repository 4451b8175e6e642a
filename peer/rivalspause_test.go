package peer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestRivalsPause: an operator's pause, and be it far longer than the deadline after which
// a peer is left behind, stops all peers of an algorithm in lock-step, and after it all go
// on from where they were, with nobody taken for dead and one model in the end.
func TestRivalsPause(t *testing.T) {
	eachRival(t, func(t *testing.T, r rival) {
		f := startRuled(t, rivalPeers, func(i int, c *peer.Config) {
			control := c.Network.Control
			r.configure(i, c)
			c.Network.Control, c.Training.Work = control, peer.Work{StepsPerPeer: 3 * rivalSteps}
		})
		f.trainAll()
		time.Sleep(time.Second)
		f.send(2, control.Command{Kind: control.Pause, Why: "lunch"})
		time.Sleep(rivalDeadline + 10*rivalStep) // who is in a round may have to wait for those who are not
		before := f.steps()
		time.Sleep(time.Minute)
		if after := f.steps(); !equal(before, after) {
			t.Errorf("steps during a pause: %v, then %v", before, after)
		}
		if least, most := slices.Min(before), slices.Max(before); least < 20 || r.name != "ps-asp" && most-least > 17 {
			t.Errorf("paused at steps %v", before)
		}
		f.send(1, control.Command{Kind: control.Resume})
		time.Sleep(time.Second)
		for i, steps := range f.steps() {
			if s := f.Peers[i].Stats(); steps < before[i]+20 || s.Members != rivalPeers || s.Lost > 0 {
				t.Errorf("peer %d, a second after the pause: %d steps, %d before; %d members, %d lost", i, steps, before[i], s.Members, s.Lost)
			}
		}
		f.trainers.Wait()
		for i, p := range f.Peers {
			if err := f.ends[i]; !errors.Is(err, peer.ErrRunOver) {
				t.Errorf("peer %d ends with %v", i, err)
			}
			if s := p.Stats(); s.FlockSteps < rivalPeers*3*rivalSteps {
				t.Errorf("peer %d sees %d steps of the flock", i, s.FlockSteps)
			}
		}
		leaveTogether(f.Flock)
		r.checkEnd(t, f.Flock)
	})
}
