package baseline_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/merge"
)

// TestWhoIsLeftWithoutTheResultMerges: one or two that come late and ask for the result, which has died with those that had it, merge
// with whoever is left, or alone: they do not ask for ever.
func TestWhoIsLeftWithoutTheResultMerges(t *testing.T) {
	for late := 1; late <= 3; late++ {
		for seed := range uint64(20) {
			w := newWorld(t, seed, merging(t, merge.Config{Deadline: time.Second}))
			traced(w)
			all := names(late + 1)
			for i, id := range all {
				w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
			}
			w.view(time.Millisecond)
			w.queue.Run(time.Second / 5)
			w.peers["ba"].finish()
			w.queue.Run(3 * time.Second)
			if !w.peers["ba"].settled {
				t.Fatal("one alone does not merge")
			}
			for _, id := range all {
				if id != "ba" {
					w.peers[id].finish()
				}
			}
			w.queue.Run(3*time.Second + time.Duration(2+seed)*time.Millisecond)
			w.die("ba", 50*time.Millisecond)
			w.queue.Run(time.Minute)
			models := map[vector]bool{}
			for _, id := range all {
				if p := w.peers[id]; p.alive {
					models[p.x] = true
					if !p.settled {
						t.Errorf("%d late, seed %d: %s has not settled", late, seed, id)
					}
				}
			}
			if len(models) != 1 {
				t.Errorf("%d late, seed %d: %d models", late, seed, len(models))
			}
		}
	}
}

// TestWhoWasGivenTheResultHasIt: one that comes when all have gone who made the result gets it from the one that they gave it to, whoever of both
// coordinates: it does not make another.
func TestWhoWasGivenTheResultHasIt(t *testing.T) {
	for seed, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		w := newWorld(t, uint64(seed), merging(t, merge.Config{Deadline: time.Second}))
		traced(w)
		all := names(3)
		for i, id := range all {
			w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
		}
		w.view(time.Millisecond)
		w.queue.Run(time.Second / 5)
		first, given, late := w.peers[all[order[0]]], w.peers[all[order[1]]], w.peers[all[order[2]]]
		for _, p := range []*node{first, given} {
			p.finish()
			if w.queue.Run(w.queue.Now() + 3*time.Second); !p.settled {
				t.Fatalf("%s has not settled", p.id)
			}
		}
		w.die(first.id, 50*time.Millisecond)
		w.queue.Run(w.queue.Now() + time.Second)
		late.finish()
		w.queue.Run(time.Minute)
		if !late.settled || late.x != given.x || given.x != first.x {
			t.Errorf("%s has %v, settled: %t; %s was given %v", late.id, late.x, late.settled, given.id, given.x)
		}
	}
}
