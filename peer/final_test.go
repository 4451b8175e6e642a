package peer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
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
	for _, n := range []int{1, 5} {
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
