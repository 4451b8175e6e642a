package peer_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// plain is an optimizer without a Reset.
type plain struct{ sgd optim.SGD }

func (o *plain) Delta(grad, x tensor.Vector, rate float64) { o.sgd.Delta(grad, x, rate) }

// TestOptimizerThatCannotForget: of one without a Reset it is said once that models stay
// apart when somebody comes, and of one that has it nothing.
func TestOptimizerThatCannotForget(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		if r.name != "allreduce" && r.name != "ps-bsp" {
			return
		}
		for _, able := range []bool{true, false} {
			core, logged := observer.New(zap.WarnLevel)
			flock := r.flock(t, func(i int, c *peer.Config) {
				if !able {
					c.Training.Optimizer = &plain{}
				}
				if i == 0 {
					c.Network.Log = zap.New(core)
				}
			})
			var came sync.WaitGroup
			came.Go(func() {
				for range 2 { // come late, one after the other
					time.Sleep(rivalFate)
					late := flock.Add()
					came.Go(func() {
						for late.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
							return atPace(rivalStep, towards)(1, x, grad)
						}) == nil {
						}
					})
				}
			})
			flock.Train(t.Context(), atPace(rivalStep, towards))
			came.Wait()
			said, want := logged.FilterMessageSnippet("no method Reset").Len(), 0
			if r.name == "allreduce" && !able {
				want = 1
			}
			if said != want {
				t.Errorf("able %t: said %d times, want %d", able, said, want)
			}
			leaveTogether(flock)
		}
	})
}
