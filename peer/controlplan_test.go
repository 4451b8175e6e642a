package peer_test

import (
	"math"
	"strings"
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

// A later word replaces those that were to take effect at its step or after it.
func TestLaterScheduleReplacesWhatWasPlanned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, func(_ int, c *peer.Config) { c.Training.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant} })
		rate := func(at uint64, rate float64) control.Command {
			return control.Command{Kind: control.SetSchedule, At: at, Schedule: optim.Schedule{Rate: rate, Shape: optim.Constant}}
		}
		r.send(0, rate(500, 0.05), rate(1000, 0.04), rate(1500, 0.03))
		r.send(1, rate(1000, 0.02))
		r.trainAll()
		for _, stage := range []struct {
			before uint64
			rate   float64
		}{{400, 0.1}, {900, 0.05}, {1400, 0.02}, {3000, 0.02}} {
			for r.Peers[0].Stats().FlockSteps < stage.before {
				time.Sleep(stepTime)
			}
			for i, p := range r.Peers {
				if s := p.Stats(); s.Rate != stage.rate {
					t.Errorf("peer %d at step %d: rate %v, want %v", i, s.FlockSteps, s.Rate, stage.rate)
				}
			}
		}
		r.end()
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

// What no peer would take is refused where it is given.
func TestCommandsThatCannotBeAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, nil)
		for name, c := range map[string]control.Command{
			"no kind":                {},
			"a pause at a step":      {Kind: control.Pause, At: 5},
			"a long reason":          {Kind: control.Stop, Why: strings.Repeat("w", 201)},
			"a reason on two lines":  {Kind: control.Stop, Why: "a\nb"},
			"a rate below zero":      {Kind: control.SetSchedule, Schedule: optim.Schedule{Rate: -1}},
			"a rate that is none":    {Kind: control.SetSchedule, Schedule: optim.Schedule{Rate: math.NaN()}},
			"a shape that is none":   {Kind: control.SetSchedule, Schedule: optim.Schedule{Rate: 1, Shape: 77}},
			"a pace below zero":      {Kind: control.SetPace, Every: -1},
			"a setting without name": {Kind: control.Announce, Settings: map[string]string{"": "x"}},
			"a long setting":         {Kind: control.Announce, Settings: map[string]string{"x": strings.Repeat("v", 81)}},
		} {
			if _, err := r.operator.Send(t.Context(), r.Peers[0].Self(), c); err == nil {
				t.Errorf("%s: sent", name)
			}
		}
		for i, p := range r.Peers {
			if s := p.Stats().Control; s.Taken != 0 || s.Malformed != 0 {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
	})
}
