package peer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// stepsOf are what each peer has taken.
func stepsOf(f *peertest.Flock) (each []uint64, all uint64) {
	for _, p := range f.Peers {
		each = append(each, p.Stats().Steps)
		all += each[len(each)-1]
	}
	return each, all
}

// TestEqualPeersTakeWhatTheyAreAskedFor: no step more, however short the run is.
func TestEqualPeersTakeWhatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		steps uint64
		pace  time.Duration
	}{{3, 2 * time.Second}, {400, time.Millisecond}} {
		t.Run(fmt.Sprintf("%d steps of %s", c.steps, c.pace), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := startWork(t, 4, peer.Work{StepsPerPeer: c.steps})
				f.WaitJoined(4)
				began := time.Now()
				f.Train(t.Context(), atPace(c.pace, towards))
				if each, all := stepsOf(f); all != 4*c.steps {
					t.Errorf("%d steps in all, want %d: %d", all, 4*c.steps, each)
				}
				if took, most := time.Since(began), time.Duration(c.steps)*c.pace+time.Second; took > most {
					t.Errorf("the run took %s, want %s at most", took, most)
				}
			})
		})
	}
}

func startWork(t *testing.T, peers int, work peer.Work) *peertest.Flock {
	return peertest.Start(t, peertest.Config{Peers: peers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(i int, c *peer.Config) {
		c.Training.Work, c.Training.Schedule, c.Training.Optimizer = work, optim.Schedule{Rate: 0.01}, &optim.SGD{}
	}})
}

// TestFastPeersDoMore: what slow ones leave, and hardly more than is left.
func TestFastPeersDoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const steps = 2000 / sparing
		paces := []time.Duration{time.Millisecond, time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond}
		f := startWork(t, len(paces), peer.Work{StepsPerPeer: steps})
		f.WaitJoined(len(paces))
		f.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) {
			time.Sleep(paces[i])
			return towards(i, x, grad)
		})
		target := uint64(len(paces) * steps)
		if each, all := stepsOf(f); all < target || all > target+target/50 || each[3] > steps/2 {
			t.Errorf("%d steps in all, want %d: %d", all, target, each)
		}
	})
}

// TestATurnIsWaitedForNoLongerThanTheContext: near the end of the run, where the others' steps may be
// those that are left.
func TestATurnIsWaitedForNoLongerThanTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10
		f := startWork(t, 2, peer.Work{StepsPerPeer: each})
		f.WaitJoined(2)
		f.TrainSteps(t.Context(), each/2, atPace(time.Millisecond, towards))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var err error
		for err == nil {
			err = f.Peers[0].Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return atPace(time.Millisecond, towards)(0, x, grad) })
		}
		if each, all := stepsOf(f); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "how far the others are") || all != 15 {
			t.Errorf("%v, after %d steps", err, each)
		}
	})
}
