package baseline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// TestMergeThatHasWaitedWithADeathAnywhere: the others have waited for one that is in its run for the deadline, and spoken with
// the coordinator alone, when a peer dies. Who coordinates next waits for their answers: one may have the result.
func TestMergeThatHasWaitedWithADeathAnywhere(t *testing.T) {
	const straggler = topology.PeerID("fa")
	for _, victim := range names(5) {
		for how, notice := range map[string]time.Duration{"noticed": 50 * time.Millisecond, "unseen": 0} {
			t.Run(fmt.Sprintf("%s/%s", victim, how), func(t *testing.T) {
				run := func(seed uint64, at int) (w *world, did int) {
					w = newWorld(t, seed, merging(t, merge.Config{Deadline: 200 * time.Millisecond}))
					traced(w)
					for i, id := range names(6) {
						w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
					}
					w.view(time.Millisecond)
					w.queue.Run(time.Second / 5)
					for _, id := range names(5) {
						w.peers[id].finish()
					}
					began := w.queue.Now()
					w.onAction = func(p *node, _ collective.Action) {
						if p.id != victim || !p.alive || w.queue.Now()-began < 190*time.Millisecond {
							return
						}
						if did++; did == at {
							w.die(p.id, notice)
						}
					}
					w.queue.Run(w.queue.Now() + 2*time.Second)
					w.peers[straggler].finish()
					w.queue.Run(w.queue.Now() + time.Minute)
					return w, did
				}
				for seed := range uint64(4) {
					_, points := run(seed, 0)
					for at := range points {
						w, _ := run(seed, at+1)
						models := map[vector][]topology.PeerID{}
						for _, p := range w.peers {
							if p.alive && !p.settled {
								t.Errorf("seed %d, death after %d of %d: %s has not settled", seed, at+1, points, p.id)
							}
							if p.alive {
								models[p.x] = append(models[p.x], p.id)
							}
						}
						if len(models) != 1 {
							t.Errorf("seed %d, death after %d of %d: %d models: %v", seed, at+1, points, len(models), models)
						}
					}
				}
			})
		}
	}
}
