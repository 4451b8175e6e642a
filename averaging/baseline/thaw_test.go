package baseline_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// thaw lets a frozen peer go on: what has come meanwhile is heard now, and its timers are due.
func (w *world) thaw(id topology.PeerID) {
	n := w.peers[id]
	w.trace("%s thaws", id)
	n.alive, n.frozen = true, false
	for kind, a := range n.timers {
		if a.Kind == averaging.SetTimer {
			n.timers[kind] = collective.Action{}
			n.tell(collective.Event{Event: averaging.Event{Kind: averaging.TimerFired, Timer: a.Timer, Exchange: a.Exchange, Peer: a.Peer}})
		}
	}
	if n.stopped {
		n.train()
	}
	held := n.held
	n.held = nil
	for _, e := range held {
		n.tell(e)
	}
}

// A process that stands still for a while, and goes on, holds up nobody for ever, nor itself.
func TestFrozenAndThawed(t *testing.T) {
	for name, machine := range map[string]func(failer) func(topology.PeerID) collective.Machine{
		"allreduce": func(t failer) func(topology.PeerID) collective.Machine {
			return allReduce(t, baseline.Config{Deadline: 400 * time.Millisecond})
		},
		"merge": func(t failer) func(topology.PeerID) collective.Machine {
			return merging(t, merge.Config{Deadline: 400 * time.Millisecond})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(r, rapid.Uint64().Draw(r, "seed"), machine(r))
				traced(w)
				if name == "allreduce" {
					sameBytes(w)
				}
				w.patience = 8 * time.Second
				w.loss = rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(r, "loss")
				for _, id := range names(rapid.IntRange(2, 6).Draw(r, "peers")) {
					w.join(id, steady(time.Duration(rapid.IntRange(10, 60).Draw(r, "period"))*time.Millisecond)).start()
				}
				w.view(time.Millisecond)
				freeze := func() {
					for range rapid.IntRange(1, 3).Draw(r, "freezes") {
						w.queue.Run(w.queue.Now() + time.Duration(rapid.IntRange(1, 400).Draw(r, "pause"))*time.Millisecond)
						victim := rapid.SampledFrom(w.names).Draw(r, "victim")
						if w.peers[victim].frozen {
							continue
						}
						w.freeze(victim)
						w.queue.After(time.Duration(rapid.IntRange(1, 1500).Draw(r, "still"))*time.Millisecond, func() { w.thaw(victim) })
					}
				}
				if name == "allreduce" {
					freeze()
					w.queue.Run(w.queue.Now() + 5*time.Second)
					w.settle(500 * time.Millisecond)
					return
				}
				w.queue.Run(300 * time.Millisecond)
				for _, id := range w.names {
					w.queue.After(time.Duration(rapid.IntRange(0, 600).Draw(r, "over"))*time.Millisecond, func() { w.peers[id].tellOver() })
				}
				freeze()
				w.queue.Run(w.queue.Now() + 30*time.Second)
				for _, id := range w.names {
					if p := w.peers[id]; p.alive && !p.settled {
						r.Fatalf("%s has not settled", id)
					}
				}
			})
		})
	}
}

// tellOver tells a peer that the run is over, later if it stands still.
func (n *node) tellOver() {
	if n.frozen {
		n.world.queue.After(10*time.Millisecond, n.tellOver)
		return
	}
	n.finish()
}

// TestACoordinatorStandsStill for as long as it waits for silent participants, just after it has come itself: it gave itself
// up too then, and the merge waited for ever.
func TestACoordinatorStandsStill(t *testing.T) {
	w := newWorld(t, 0, merging(t, merge.Config{Deadline: 400 * time.Millisecond}))
	w.patience = 8 * time.Second
	for _, id := range names(4) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(300 * time.Millisecond)
	for i, id := range w.names {
		w.queue.After([]time.Duration{0, 455 * time.Millisecond, 0, 0}[i], func() { w.peers[id].tellOver() })
	}
	w.queue.Run(755 * time.Millisecond)
	w.freeze("ba")
	w.queue.After(400*time.Millisecond, func() { w.thaw("ba") })
	w.queue.Run(w.queue.Now() + 30*time.Second)
	for _, id := range w.names {
		if !w.peers[id].settled {
			t.Errorf("%s has not settled", id)
		}
	}
}
