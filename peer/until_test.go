package peer_test

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// nearness is the accuracy of a model on held-out data: 1 where the flock's optimum is.
func nearness(x tensor.Vector) float64 {
	off := 0.0
	for _, v := range x {
		off += math.Abs(float64(v)-common-3.5) / float64(len(x))
	}
	return 1 / (1 + off/10)
}

// untilRun trains eight peers, each of which evaluates as given, and returns when it was over, in virtual time.
func untilRun(t *testing.T, until peer.Until, evaluate func(i int, x tensor.Vector) (accuracy, loss float64), check func(flock *peertest.Flock, took time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		flock := peertest.Start(t, peertest.Config{Peers: 8, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Network.Control.Digests = time.Second
			c.Training.Schedule = optim.Schedule{Rate: 0.01}
			c.Training.Work = peer.Work{StepsPerPeer: 2000, Until: until}
			if until.Evaluate == nil && evaluate != nil {
				c.Training.Work.Until.Evaluate = func(x tensor.Vector) (float64, float64) { return evaluate(i, x) }
			}
		}})
		flock.Train(t.Context(), atPace(100*time.Millisecond, towards))
		took := time.Since(began)
		for _, p := range flock.Peers {
			_ = p.Close()
		}
		check(flock, took)
	})
}

// TestAllStopWhenTheModelIsGood: within an evaluation or two of the aim, for the same reason at all, whatever one of
// eight tells.
func TestAllStopWhenTheModelIsGood(t *testing.T) {
	t.Parallel()
	const aim = 0.75
	var honest time.Duration
	for _, c := range []struct {
		name string
		lie  func(truth float64) float64
	}{
		{"honest", func(truth float64) float64 { return truth }},
		{"boasts", func(float64) float64 { return 1 }},
		{"denies", func(float64) float64 { return 0 }},
	} {
		var reached atomic.Int64 // when an honest member first found the aim reached
		untilRun(t, peer.Until{Accuracy: aim}, func(i int, x tensor.Vector) (accuracy, loss float64) {
			accuracy = nearness(x)
			if i == 3 {
				return c.lie(accuracy), 1 - accuracy
			}
			if accuracy >= aim {
				reached.CompareAndSwap(0, time.Now().UnixNano())
			}
			return accuracy, 1 - accuracy
		}, func(flock *peertest.Flock, took time.Duration) {
			t.Logf("%s: %s", c.name, took)
			if c.name == "honest" {
				honest = took
			} else if off := (took - honest).Abs(); off > 4500*time.Millisecond { // that between two evaluations of eight members
				t.Errorf("%s: the run takes %s, without a liar %s", c.name, took, honest)
			}
			for i, p := range flock.Peers {
				s := p.Stats()
				if s.StoppedBy != "accuracy" || s.Progress > 0.9 {
					t.Errorf("%s: peer %d stopped by %q at %.2f of the work", c.name, i, s.StoppedBy, s.Progress)
				}
				best := make(tensor.Vector, newModel().Layout().Len())
				accuracy, _, err := p.Best(best)
				if i != 3 && (err != nil || accuracy < aim-0.05 || math.Abs(nearness(best)-accuracy) > 1e-9) {
					t.Errorf("%s: the best of peer %d has %.3f, told as %.3f, %v", c.name, i, nearness(best), accuracy, err)
				}
			}
		})
		if reached.Load() == 0 {
			t.Errorf("%s: nobody has reached the aim", c.name)
		}
	}
}

// TestDeadline: all stop there; a model that gets no better stops a run before.
func TestDeadlineAndPlateau(t *testing.T) {
	t.Parallel()
	untilRun(t, peer.Until{Deadline: 20 * time.Second}, nil, func(flock *peertest.Flock, took time.Duration) {
		for i, p := range flock.Peers {
			if by := p.Stats().StoppedBy; by != "deadline" || took < 20*time.Second || took > 23*time.Second {
				t.Errorf("peer %d stopped by %q after %s", i, by, took)
			}
			if _, _, err := p.Best(nil); !errors.Is(err, peer.ErrNoBest) {
				t.Errorf("the best of what nobody evaluates: %v", err)
			}
		}
	})
	untilRun(t, peer.Until{Plateau: 3, Deadline: time.Hour}, func(int, tensor.Vector) (float64, float64) { return 0.5, 1 }, func(flock *peertest.Flock, took time.Duration) {
		for i, p := range flock.Peers {
			if by := p.Stats().StoppedBy; by != "plateau" || took < 3*800*time.Millisecond || took > 6*time.Second {
				t.Errorf("peer %d stopped by %q after %s", i, by, took)
			}
		}
	})
}

// TestUntilThatCannotBe is refused, all faults at once.
func TestUntilThatCannotBe(t *testing.T) {
	bad := peer.Config{Run: "r", Params: newModel()}
	bad.Training.Work.Until = peer.Until{Accuracy: 97}
	if _, err := peer.Start(t.Context(), bad); !errors.Is(err, peer.ErrConfig) || !strings.Contains(err.Error(), "Accuracy 97") {
		t.Error(err)
	}
	bad.Training.Work.Until = peer.Until{Plateau: 3}
	if _, err := peer.Start(t.Context(), bad); !errors.Is(err, peer.ErrConfig) || !strings.Contains(err.Error(), "need Evaluate") {
		t.Error(err)
	}
	bad.Training.Work.Until = peer.Until{Deadline: time.Minute}
	bad.Network.Listen = []string{}
	if _, err := peer.Start(t.Context(), bad); !errors.Is(err, peer.ErrConfig) || !strings.Contains(err.Error(), "Digests") {
		t.Error(err)
	}
}
