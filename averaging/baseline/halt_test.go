package baseline_test

import (
	"fmt"
	"strings"
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

// A sum that fails for all, as when one that speaks does not say for a minute what it knows of it, is made anew of the gradients that all have: the
// run does not halt, and nobody needs a copy.
func TestASumThatFailsIsMadeAnew(t *testing.T) {
	w := newWorld(t, 1, allReduce(t, baseline.Config{Deadline: 400 * time.Millisecond}))
	traced(w)
	v := sameBytes(w)
	w.patience = 3 * time.Minute
	for _, id := range names(3) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second)
	coordinator := w.coordinator()
	mute := w.names[0]
	if mute == coordinator {
		mute = w.names[1]
	}
	tries := 0
	w.drops = func(from *node, a collective.Action) bool {
		if a.Message.Sum != nil && from.id != mute && strings.HasSuffix(a.Message.Sum.Name, ", try 2") {
			tries++
		}
		return a.Message.Sum != nil && from.id == mute && w.queue.Now() < 75*time.Second
	}
	w.onAction = func(n *node, a collective.Action) {
		if a.Kind == collective.Send && a.Transfer.From == collective.Parameters {
			t.Errorf("at %s, %s: %s", w.queue.Now(), n.id, a)
		}
	}
	w.queue.Run(75 * time.Second)
	before := w.peers[coordinator].steps
	w.queue.Run(90 * time.Second)
	if w.halted() || w.peers[coordinator].steps < before+10 || tries == 0 {
		t.Errorf("halted: %t, %d steps after %d, %d words of a second try", w.halted(), w.peers[coordinator].steps, before, tries)
	}
	if len(v.models) < 10 {
		t.Errorf("%d models: the test shows little", len(v.models))
	}
	w.onAction = nil
	w.settle(100 * time.Millisecond)
	endsAlike(t, w)
}
