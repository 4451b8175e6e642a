package baseline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// When the coordinator dies at any moment of a round, noticed, unseen or frozen, another takes its place and the run
// goes on: no trainer is halted, each makes steps again, and all end with one model.
func TestTheRunGoesOnWithoutItsCoordinator(t *testing.T) {
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
					goesOn(t, newWorld(t, uint64(moment), machine), (*world).coordinator, time.Duration(moment)*time.Millisecond, 4*deadline, 5, end)
				}
			})
		}
	}
}

// goesOn ends the coordinator of a flock of four at a moment, and checks that the others go on some time later, with at
// least so many steps in as long a time again.
func goesOn(t *testing.T, w *world, coordinator func(*world) topology.PeerID, moment, within time.Duration, least int, end func(*world, topology.PeerID)) {
	for _, id := range names(4) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second + moment)
	dead := coordinator(w)
	if w.peers[dead] == nil || w.peers[dead].steps < 3 {
		t.Fatalf("%s: %q coordinates", moment, dead)
	}
	told := 0
	w.onAction = func(n *node, a collective.Action) {
		if a.Kind == collective.Note && a.Fact.What == baseline.Replaced {
			told++
		}
	}
	end(w, dead)
	w.queue.Run(w.queue.Now() + within)
	before := map[topology.PeerID]int{}
	for id, p := range w.peers {
		before[id] = p.steps
	}
	w.queue.Run(w.queue.Now() + within)
	for id, p := range w.peers {
		if p.alive && (p.halted != 0 || p.steps < before[id]+least) {
			t.Errorf("%s ends at %s: %s is halted for %q, and has made %d steps since", dead, moment, id, p.halted, p.steps-before[id])
		}
	}
	if next := coordinator(w); next == dead || told == 0 {
		t.Errorf("%s ends at %s: %q coordinates then, said %d times", dead, moment, next, told)
	}
	w.onAction = nil
	w.settle(100 * time.Millisecond)
	endsAlike(t, w)
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
