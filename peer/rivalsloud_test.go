package peer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestRivalThatCannotSendIsTold: a trainer whose gradient is too long to be sent hears of it
// by its step, whether its peer coordinates, serves or neither; the others train on while
// it is there.
func TestRivalThatCannotSendIsTold(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		if r.name == "dpsgd" {
			return // it sends no gradients
		}
		for _, choose := range []func(*testing.T, *peertest.Flock) int{coordinator, worker} {
			flock := r.flock(t, nil)
			loud := choose(t, flock)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			var group sync.WaitGroup
			said := make([]error, rivalPeers)
			for i, p := range flock.Peers {
				group.Go(func() {
					for said[i] == nil && p.Stats().Steps < rivalSteps/4 {
						said[i] = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
							r, err := atPace(rivalStep, towards)(i, x, grad)
							if i == loud {
								tensor.Scale(grad, 1e9)
							}
							return r, err
						})
					}
					if i == loud {
						flock.Leave(i)
					}
				})
			}
			group.Wait()
			cancel()
			for i, err := range said {
				if loud == coordinator(t, flock) && errors.Is(err, peer.ErrCoordinatorLost) {
					err = nil // since its program has ended
				}
				if s := flock.Peers[i].Stats(); i != loud && (err != nil || s.Quarantined > 0) {
					t.Errorf("peer %d, while peer %d is loud, keeps %d in quarantine: %v", i, loud, s.Quarantined, err)
				}
			}
			if err := said[loud]; err == nil || !strings.Contains(err.Error(), "lower the learning rate") {
				t.Errorf("peer %d cannot send its gradient, and hears %v", loud, err)
			}
			leaveTogether(flock)
		}
	})
}

// TestRivalsTooFastSayIt: where the learning rate makes steps that take the model out of
// all bounds, every trainer that is waited for hears of it, and none waits for ever.
func TestRivalsTooFastSayIt(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		if r.name == "dpsgd" {
			return // each makes steps of its own
		}
		flock := r.flock(t, func(_ int, c *peer.Config) { c.Training.Schedule = optim.Schedule{Rate: 1e9} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group sync.WaitGroup
		said := make([]error, rivalPeers)
		for i, p := range flock.Peers {
			group.Go(func() {
				for said[i] == nil {
					said[i] = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return atPace(rivalStep, towards)(i, x, grad) })
				}
				flock.Leave(i) // as a program that ends with the error
			})
		}
		group.Wait()
		for i, err := range said {
			told := errors.Is(err, optim.ErrNotFinite) || errors.Is(err, peer.ErrCoordinatorLost) // whose program has ended
			if s := flock.Peers[i].Stats(); !told || s.Quarantined > 0 {
				t.Errorf("peer %d keeps %d in quarantine, and hears %v", i, s.Quarantined, err)
			}
		}
	})
}
