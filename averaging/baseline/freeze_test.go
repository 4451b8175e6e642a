package baseline_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// A peer that freezes at any moment of a round, of which no connection and no member tells,
// costs the others a few deadlines and no more.
func TestFrozenPeerIsLeftBehind(t *testing.T) {
	const deadline = 400 * time.Millisecond
	config := baseline.Config{Deadline: deadline}
	for name, machine := range map[string]func(topology.PeerID) collective.Machine{
		"allreduce": allReduce(t, config),
		"dpsgd":     dpsgd(t, config),
		"bsp":       paramServer(t, config, gates(t)["bsp"]),
		"ssp":       paramServer(t, config, gates(t)["ssp"]),
		"dssp":      paramServer(t, config, gates(t)["dssp"]),
		"asp":       paramServer(t, config, gates(t)["asp"]),
	} {
		t.Run(name, func(t *testing.T) {
			for moment := 0; moment < 60; moment += 3 {
				w := newWorld(t, uint64(moment), machine)
				for _, id := range names(4) {
					w.join(id, steady(10*time.Millisecond)).start()
				}
				w.view(time.Millisecond)
				w.queue.Run(300*time.Millisecond + time.Duration(moment)*time.Millisecond)
				frozen := w.names[moment/3%4]
				if w.coordinator() == frozen {
					continue // see TestTheRunHaltsWithItsCoordinator
				}
				w.freeze(frozen)
				w.queue.Run(w.queue.Now() + 4*deadline)
				before := map[topology.PeerID]int{}
				for id, p := range w.peers {
					before[id] = p.steps
				}
				w.queue.Run(w.queue.Now() + 2*time.Second)
				for id, p := range w.peers {
					if id != frozen && p.steps < before[id]+8 {
						t.Errorf("%s froze at moment %d: %s has made %d steps in two seconds", frozen, moment, id, p.steps-before[id])
					}
				}
			}
		})
	}
}
