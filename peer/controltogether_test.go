package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAPlannedScheduleKeepsModelsAlike: peers that make the same updates change their
// learning rate at the same one, though each counts the flock's steps a little otherwise.
func TestAPlannedScheduleKeepsModelsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peers, at = 4, 403
		r := startRuled(t, peers, func(i int, c *peer.Config) {
			c.Training.Checkpoint = peer.CheckpointWith(peer.Behind{Incarnation: 1, Inherited: uint64(20 * i)}) // what the others have not heard of
			c.Training.Work = peer.Work{Steps: 3000}
			c.Training.Schedule = optim.Schedule{Rate: 0.001, Shape: optim.Constant}
			c.Training.Optimizer = &optim.SGD{}
			c.Training.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) {
				return baseline.NewAllReduce(baseline.Config{Self: c.Self})
			}
		})
		r.send(0, control.Command{Kind: control.SetSchedule, At: at, Schedule: optim.Schedule{Rate: 0.1, Shape: optim.Constant}})
		time.Sleep(time.Second)
		r.trainAll()
		for r.Peers[0].Stats().FlockSteps < 2000 {
			time.Sleep(stepTime)
		}
		models := r.Models() // at rest, as far as the numbers go
		for i, p := range r.Peers {
			if s := p.Stats(); s.Over || s.Rate != 0.1 {
				t.Errorf("peer %d: %+v", i, s)
			}
			if d := tensor.SquaredDistance(models[i], models[0]); d > 1e-3 {
				t.Errorf("the models of peers %d and 0 are %g apart", i, d)
			}
		}
		r.trainers.Wait()
	})
}
