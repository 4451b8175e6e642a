package peer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// mergeDeadline is how long others are waited for in a merge.
const mergeDeadline = 4 * time.Second

// merging makes a peer exchange by a code that rounds, and merge in the end.
func merging(i int, c *peer.Config) {
	shortRun(i, c)
	c.Training.Work = peer.Work{StepsPerPeer: 100, Grace: 4 * mergeDeadline}
	c.Training.Exchange.Pace.Every = 4
	c.Training.Exchange.SliceLen = 512
	c.Training.Exchange.Codec = quant.Policy{Codec: "lattice8+4"}
	c.Training.Exchange.Final = &merge.Config{Deadline: mergeDeadline}
}

func mergingFlock(t *testing.T, peers int, change func(int, *peer.Config)) *peertest.Flock {
	t.Helper()
	return peertest.Start(t, peertest.Config{
		Peers: peers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Seed: 11,
		Configure: func(i int, c *peer.Config) {
			merging(i, c)
			if change != nil {
				change(i, c)
			}
		},
	})
}

// checkMerged checks that those peers have the same bytes, and say so.
func checkMerged(t *testing.T, flock *peertest.Flock, those []int) {
	t.Helper()
	first, other := make(tensor.Vector, newModel().Layout().Len()), make(tensor.Vector, newModel().Layout().Len())
	flock.Peers[those[0]].Snapshot(first, 0)
	for _, i := range those {
		flock.Peers[i].Snapshot(other, 0)
		if d := tensor.SquaredDistance(first, other); d != 0 {
			t.Errorf("the models of peers %d and %d differ by %g", those[0], i, d)
		}
		if s := flock.Peers[i].Stats(); !s.Merged || !s.Over {
			t.Errorf("peer %d: merged %v, over %v", i, s.Merged, s.Over)
		}
	}
}

// TestFinalMerge: peers whose exchanges round end with the same bytes, soon after the
// last step.
func TestFinalMerge(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 4, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flock := mergingFlock(t, n, nil)
				flock.Train(t.Context(), atPace(rivalStep, towards))
				all := flock.Living()
				began := time.Now()
				leaveTogether(flock)
				if took := time.Since(began); took > mergeDeadline/2 {
					t.Errorf("it took %s: somebody has waited for nobody", took)
				}
				checkMerged(t, flock, all)
			})
		})
	}
}

// TestFinalMergeWithADeath: one that dies when the run is over, or just before, is left
// out by the others, who have the same bytes all the same.
func TestFinalMergeWithADeath(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				n := 4 + int(seed%2)
				victim := rng.IntN(n)
				flock := mergingFlock(t, n, nil)
				go func() { // the run takes about a second
					time.Sleep(950*time.Millisecond + time.Duration(rng.Int64N(int64(120*time.Millisecond))))
					flock.Crash(victim)
				}()
				flock.Train(t.Context(), atPace(rivalStep, towards))
				time.Sleep(150 * time.Millisecond)
				living := flock.Living()
				leaveTogether(flock)
				if len(living) != n-1 {
					t.Fatalf("%d live", len(living))
				}
				checkMerged(t, flock, living)
			})
		})
	}
}

// TestFinalMergeThatCannotBe: peers that cannot reach each other leave within their
// grace, each with the model that it had, and say so.
func TestFinalMergeThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, text := observer.New(zap.WarnLevel)
		const grace = mergeDeadline / 4
		flock := mergingFlock(t, 2, func(_ int, c *peer.Config) {
			c.Training.Work.Grace, c.Network.Log = grace, zap.New(logs)
		})
		go func() {
			time.Sleep(500 * time.Millisecond)
			a, b := flock.Peers[0].Self(), flock.Peers[1].Self()
			flock.Network.StallAfter(a, b, 0)
			flock.Network.StallAfter(b, a, 0)
		}()
		flock.Train(t.Context(), atPace(rivalStep, towards))
		before := flock.Models()
		began := time.Now()
		leaveTogether(flock)
		if took := time.Since(began); took > grace+peer.Stall+grace {
			t.Errorf("leaving took %s", took)
		}
		after := flock.Models()
		merged := 0
		for i, p := range flock.Peers {
			if p.Stats().Merged {
				merged++
			}
			if tensor.SquaredDistance(before[i], after[i]) != 0 {
				t.Errorf("peer %d has another model than before", i)
			}
		}
		said := text.FilterMessageSnippet("final merge has not come about").Len()
		if said+merged != 2 || said == 0 { // who is left when the other has gone merges alone
			t.Errorf("%d peers say that there was no merge, %d that there was", said, merged)
		}
	})
}

// TestNoStepAfterTheEnd: a step that is computed while the run ends is not applied: the
// merge takes the parameters as they were.
func TestNoStepAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := mergingFlock(t, 4, func(_ int, c *peer.Config) {
			c.Training.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant} // else the last steps are of no length
		})
		flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) {
			time.Sleep(rivalStep * time.Duration(1+150*(i%2))) // the slow ones are at work when the run ends
			return towards(i, x, grad)
		})
		all := flock.Living()
		leaveTogether(flock)
		checkMerged(t, flock, all)
	})
}

// TestFinalMergeWithOneThatDoesNot: a member whose machine knows no merge costs the others
// a wait, and nothing else.
func TestFinalMergeWithOneThatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = 2
		flock := mergingFlock(t, 4, func(i int, c *peer.Config) {
			if i == other {
				c.Training.Exchange.Final = nil
			}
		})
		flock.Train(t.Context(), atPace(rivalStep, towards))
		began := time.Now()
		leaveTogether(flock)
		if took := time.Since(began); took > 2*mergeDeadline {
			t.Errorf("it took %s", took)
		}
		checkMerged(t, flock, []int{0, 1, 3})
		if s := flock.Peers[other].Stats(); s.Merged || s.Quarantined > 0 {
			t.Errorf("the one that knows no merge: %+v", s)
		}
	})
}
