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

// someServe makes machines of which some make no gradients.
func someServe(t failer, parts int, gate func() baseline.Gate, only map[topology.PeerID]bool) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		return paramServers(t, parts, baseline.Config{Deadline: 400 * time.Millisecond, ServeOnly: only[id]}, gate)(id)
	}
}

// Members that only serve have the parts from the first moment, make no step and keep nobody waiting; when one dies,
// the member with the newest parameters of its part takes its place, and all end with one model, they too.
func TestWhoOnlyServes(t *testing.T) {
	all := names(6)
	for _, serving := range [][]topology.PeerID{{"ca"}, {"da", "fa"}} {
		for name, gate := range gates(t) {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", len(serving), "/", dies), func(t *testing.T) {
					only := map[topology.PeerID]bool{}
					for _, id := range serving {
						only[id] = true
					}
					w := newWorld(t, 1, someServe(t, 2, gate, only))
					for _, id := range all {
						if n := w.join(id, steady(10*time.Millisecond)); !only[id] {
							n.start()
						}
					}
					w.view(time.Millisecond)
					w.queue.Run(100 * time.Millisecond)
					for id, n := range w.peers {
						if only[id] == (n.steps > 0) {
							t.Errorf("%s has made %d steps in a tenth of a second", id, n.steps)
						}
					}
					w.queue.Run(time.Second)
					lost := w.coordinatorOf(1)
					if !only[w.coordinatorOf(0)] || !only[lost] || len(serving) == 2 && w.coordinatorOf(0) == lost {
						t.Errorf("%s and %s serve, of %s", w.coordinatorOf(0), lost, serving)
					}
					if dies {
						w.die(lost, 50*time.Millisecond)
						w.queue.Run(w.queue.Now() + 2*time.Second)
						before := w.peers["aa"].steps
						w.queue.Run(w.queue.Now() + time.Second)
						if next := w.coordinatorOf(1); next == lost || only[next] || w.peers["aa"].steps < before+5 {
							t.Errorf("%s serves after %s, and aa has made %d steps since", next, lost, w.peers["aa"].steps-before)
						}
					}
					w.settle(100 * time.Millisecond)
					endsAlike(t, w)
				})
			}
		}
	}
}

// A member that only serves says so to the runtime, so that others know.
func TestWhoOnlyServesSaysSo(t *testing.T) {
	for _, only := range []bool{true, false} {
		m := paramServers(t, 2, baseline.Config{ServeOnly: only}, gates(t)["bsp"])("a")
		if m.Traits().ServesOnly != only {
			t.Errorf("serves: %t, want %t", m.Traits().ServesOnly, only)
		}
		var _ averaging.Machine = m
	}
}
