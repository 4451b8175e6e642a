package baseline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// When the coordinator dies at any moment of a round, noticed, unseen or frozen, every
// trainer is told that the run halts, within two deadlines, and again when it asks again.
func TestTheRunHaltsWithItsCoordinator(t *testing.T) {
	const deadline = 400 * time.Millisecond
	machines := map[string]func(topology.PeerID) collective.Machine{"allreduce": allReduce(t, baseline.Config{Deadline: deadline})}
	for name, gate := range gates(t) {
		machines[name] = paramServer(t, baseline.Config{Deadline: deadline}, gate)
	}
	ends := map[string]func(*world, topology.PeerID){
		"noticed": func(w *world, id topology.PeerID) { w.die(id, 50*time.Millisecond) },
		"unseen":  func(w *world, id topology.PeerID) { w.die(id, 0) },
		"frozen":  (*world).freeze,
	}
	for name, machine := range machines {
		for how, end := range ends {
			t.Run(fmt.Sprint(name, "/", how), func(t *testing.T) {
				for moment := range 20 {
					w := newWorld(t, uint64(moment), machine)
					for _, id := range names(4) {
						w.join(id, steady(10*time.Millisecond)).start()
					}
					w.view(time.Millisecond)
					w.queue.Run(time.Second + time.Duration(moment)*time.Millisecond)
					dead := w.coordinator()
					if w.peers[dead] == nil || w.peers[dead].steps < 3 {
						t.Fatalf("moment %d: %q coordinates", moment, dead)
					}
					end(w, dead)
					w.queue.Run(w.queue.Now() + 2*deadline)
					for id, p := range w.peers {
						if id != dead && p.halted != averaging.NoCoordinator {
							t.Errorf("%s ends at moment %d: %s is halted for %q", dead, moment, id, p.halted)
						}
						if p.alive {
							p.halted = 0
							p.train()
						}
					}
					w.queue.Run(w.queue.Now() + 100*time.Millisecond)
					for id, p := range w.peers {
						if id != dead && p.halted != averaging.NoCoordinator {
							t.Errorf("%s ended at moment %d: %s asks again, and is halted for %q", dead, moment, id, p.halted)
						}
					}
					w.settle(100 * time.Millisecond)
				}
			})
		}
	}
}
