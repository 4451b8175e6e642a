package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
)

// A change takes effect at its step of the flock, not before, for everybody, those
// who come later included; parts that are not named stay.
func TestScheduleChangesAtItsStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 4, func(_ int, c *peer.Config) {
			c.Training.Work = peer.Work{Steps: 40_000}
			c.Training.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant}
		})
		r.trainAll()
		time.Sleep(time.Second) // 400 steps of the flock in a second
		const at = 2000
		r.send(0, control.Command{Kind: control.SetSchedule, At: at, Schedule: optim.Schedule{Rate: 0.02, Shape: optim.Constant}},
			control.Command{Kind: control.SetPace, At: at, Every: 9},
			control.Command{Kind: control.SetWork, At: at, Steps: 8000})
		time.Sleep(time.Second)
		for i, p := range r.Peers {
			if s := p.Stats(); s.FlockSteps >= at || s.Rate != 0.1 || s.Exchanges.Every != 4 || s.Target != 40_000 {
				t.Errorf("peer %d before its step: %+v", i, s)
			}
		}
		time.Sleep(6 * time.Second)
		late := r.Add()
		r.train(4)
		time.Sleep(5 * time.Second)
		for i, p := range r.Peers {
			if s := p.Stats(); s.FlockSteps < at || s.Rate != 0.02 || s.Exchanges.Every != 9 || s.Target != 8000 {
				t.Errorf("peer %d after its step: %+v", i, s)
			}
		}
		r.trainers.Wait()
		for i, p := range r.Peers {
			if s := p.Stats(); !s.Over || s.FlockSteps < 8000 || s.FlockSteps > 9000 || p.Stats().Control.Stopped {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
		if late.Stats().Steps == 0 {
			t.Error("the latecomer took no step")
		}
	})
}

// Resume in a run that is paused lets it end too, if its work was done meanwhile; and
// a run whose work is lowered below what is done ends at once, paused or not.
func TestPausedRunEndsWhenItsWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 4, func(_ int, c *peer.Config) { c.Training.Work = peer.Work{Steps: 1_000_000} })
		r.trainAll()
		time.Sleep(time.Second)
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(time.Minute)
		r.send(1, control.Command{Kind: control.SetWork, Steps: 100})
		r.trainers.Wait()
		for i, p := range r.Peers {
			if s := p.Stats(); !s.Over {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
	})
}
