package baseline_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/topology"
)

// Peers need not agree on Config.Parts: each trains as in a flock that does.
func TestPeersOfDifferentParts(t *testing.T) {
	for name, machine := range map[string]func(parts int) func(topology.PeerID) averaging.Machine{
		"allreduce": func(parts int) func(topology.PeerID) averaging.Machine {
			return allReduce(t, baseline.Config{Parts: parts})
		},
		"bsp": func(parts int) func(topology.PeerID) averaging.Machine {
			return paramServer(t, baseline.Config{Parts: parts}, gates(t)["bsp"])
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := names(3)
			w := newWorld(t, 3, func(id topology.PeerID) averaging.Machine {
				return machine(map[topology.PeerID]int{all[0]: 1, all[1]: 3, all[2]: 2}[id])(id)
			})
			traced(w)
			for _, id := range all {
				w.join(id, steady(10*time.Millisecond)).start()
			}
			w.view(time.Millisecond)
			w.queue.Run(5 * time.Second)
			for _, id := range all {
				if p := w.peers[id]; p.steps < 40 {
					t.Errorf("%s has made %d steps", id, p.steps)
				}
			}
			w.settle(100 * time.Millisecond)
		})
	}
}
