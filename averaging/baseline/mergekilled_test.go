package baseline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// execution is a merge in which one peer dies.
type execution struct {
	peers  int
	late   topology.PeerID // is done when the others have merged; empty is nobody
	victim topology.PeerID
	notice time.Duration // within which others hear of the death; 0 is never
	frozen bool          // nor does anything break off
	seed   uint64
}

// run has the victim die once it has done so many things in the merge, or, if somebody is
// late, since that one is done; 0 is never. It tells how many it did.
func (e execution) run(t *testing.T, at int) (w *world, did int) {
	w = newWorld(t, e.seed, merging(t, merge.Config{Deadline: 2 * time.Second}))
	for i, id := range names(e.peers) {
		w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second / 5)
	counts := e.late == ""
	w.onAction = func(p *node, _ collective.Action) {
		if p.id != e.victim || !p.alive || !counts {
			return
		}
		if did++; did != at {
			return
		}
		if e.frozen {
			w.freeze(p.id)
		} else {
			w.die(p.id, e.notice)
		}
	}
	for _, id := range w.names {
		if id != e.late {
			w.peers[id].finish()
		}
	}
	if e.late != "" {
		w.queue.Run(w.queue.Now() + 3*time.Second)
		counts = true
		w.peers[e.late].finish()
	}
	w.queue.Run(w.queue.Now() + time.Minute)
	return w, did
}

// check tells what is wrong with the models of those who live.
func (e execution) check(t *testing.T) {
	t.Helper()
	_, points := e.run(t, 0)
	for at := range points {
		w, _ := e.run(t, at+1)
		models := map[vector]bool{}
		for id, p := range w.peers {
			if p.alive && !p.settled {
				t.Errorf("death after %d of %d: %s has not settled", at+1, points, id)
			}
			if p.alive {
				models[p.x] = true
			}
		}
		if len(models) != 1 {
			t.Errorf("death after %d of %d: %d models", at+1, points, len(models))
		}
	}
}

// TestMergeWithADeathAnywhere lets each peer die, the leader among them, after each single
// thing that it does in the merge: each word that it tells, each transfer that it begins,
// answers or gives up, each timer, and what it does to its model. All others end with one
// model.
func TestMergeWithADeathAnywhere(t *testing.T) {
	for n := 2; n <= 5; n++ {
		for i, victim := range names(n) {
			for how, e := range map[string]execution{"noticed": {notice: 50 * time.Millisecond}, "unseen": {}, "frozen": {frozen: true}} {
				e.peers, e.victim, e.seed = n, victim, uint64(i)
				t.Run(fmt.Sprintf("%d/%s/%s", n, victim, how), e.check)
			}
		}
	}
	// Where two that have the result each gave way to the other.
	execution{peers: 5, victim: "ba", notice: 50 * time.Millisecond, seed: 1}.check(t)
}

// TestGiftWithADeathAnywhere does so while one that comes late is given the result: it
// ends with that of the others, from whoever has it, and never with pieces of it.
func TestGiftWithADeathAnywhere(t *testing.T) {
	const late = topology.PeerID("ca")
	for _, victim := range names(4) {
		for how, e := range map[string]execution{"noticed": {notice: 50 * time.Millisecond}, "unseen": {}, "frozen": {frozen: true}} {
			if victim == late {
				continue
			}
			e.peers, e.victim, e.late = 4, victim, late
			t.Run(fmt.Sprintf("%s/%s", victim, how), e.check)
		}
	}
}

// TestHalfAGift: one that comes late, and whose copy of the result breaks off for good at
// any moment, keeps its own model whole.
func TestHalfAGift(t *testing.T) {
	const (
		moments = 200
		apart   = 200 * time.Microsecond
	)
	own, others := 0, 0
	for moment := range moments {
		w := newWorld(t, 2, merging(t, merge.Config{Deadline: 2 * time.Second}))
		for i, id := range names(2) {
			w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
		}
		w.view(time.Millisecond)
		w.queue.Run(time.Second / 5)
		giver, late := w.peers["ba"], w.peers["aa"]
		giver.finish()
		w.queue.Run(3 * time.Second)
		late.over = true // its trainer takes no more steps
		for i := range giver.x {
			giver.sum[i], giver.x[i], late.x[i] = 1, 1, 2
		}
		late.finish()
		w.queue.Run(3*time.Second + time.Duration(moment)*apart)
		w.die("ba", 50*time.Millisecond)
		w.queue.Run(time.Minute)
		switch late.x {
		case vector{2, 2, 2, 2, 2, 2, 2}:
			own++
		case giver.x:
			others++
		default:
			t.Errorf("death after %s: %v", time.Duration(moment)*apart, late.x)
		}
	}
	if own == 0 || others == 0 {
		t.Errorf("%d ended with their own model and %d with the other: the test shows nothing", own, others)
	}
}
