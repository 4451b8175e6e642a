package stages

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var flocks = flag.Uint64("flocks", 3, "how many flocks of stages have members that come and go")

const pass = 10 * time.Millisecond

func even(int, int) time.Duration { return pass }

// rate is how many micro-batches a second come back to their sources, once the pipeline is full.
func rate(w *world) float64 {
	w.run(5 * time.Second)
	before := w.done
	w.run(20 * time.Second)
	return float64(w.done-before) / 20
}

// TestAllStagesAreBusy: with as many micro-batches on their way as keep all busy, they are: a micro-batch takes three passes
// of each stage, so three members of a stage do at most 100 a second.
func TestAllStagesAreBusy(t *testing.T) {
	for _, stages := range []int{1, 2, 4} {
		for _, members := range []int{1, 3} {
			got := rate(newWorld(t, members, 2, 4*stages*members, stages, even))
			best := float64(members) * float64(time.Second) / float64(3*pass)
			t.Logf("%d stages of %d: %.1f micro-batches a second, at most %.1f", stages, members, got, best)
			if got < 0.85*best {
				t.Errorf("%d stages of %d: %.1f micro-batches a second, at most %.1f", stages, members, got, best)
			}
		}
	}
}

// TestAStragglerGetsLess: one of three members of a stage is ten times slower.
func TestAStragglerGetsLess(t *testing.T) {
	slow := func(stage, i int) time.Duration {
		if stage == 1 && i == 1 {
			return 10 * pass
		}
		return pass
	}
	free := rate(newWorld(t, 3, 3, 12, 3, even))
	with := rate(newWorld(t, 3, 3, 12, 3, slow))
	t.Logf("%.1f micro-batches a second, %.1f with a straggler", free, with)
	if free > 1.5*with {
		t.Errorf("a straggler of three costs %.2f ×", free/with)
	}
}

// TestMembersComeAndGo: one of twelve dies every ten seconds, and another comes three seconds later. No micro-batch of a
// source that lives is lost, and what is computed twice is counted.
func TestMembersComeAndGo(t *testing.T) {
	for seed := range *flocks {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 4, 4, 12, 3, even)
			rng := rand.New(rand.NewPCG(seed, 3))
			w.run(5 * time.Second)
			for i := range 12 {
				stage := rng.IntN(3)
				alive := w.alive(stage)
				w.die(w.nodes[alive[rng.IntN(len(alive))]])
				w.run(3*time.Second + time.Duration(rng.IntN(1000))*time.Millisecond)
				w.add(stage, 10+i, pass)
				before := w.done
				w.run(7 * time.Second)
				if got := float64(w.done-before) / 7; got < 85 {
					t.Errorf("after death %d: %.1f micro-batches a second", i, got)
				}
				w.addUp()
			}
			if c := w.counts(); c.Lost > 0 || c.Again == 0 {
				t.Errorf("the sources: %+v", c)
			}
		})
	}
}

// TestASourceDies: what it sent is given up everywhere, and the memory is free for others.
func TestASourceDies(t *testing.T) {
	w := newWorld(t, 2, 2, 8, 3, even)
	w.run(3 * time.Second)
	gone := w.nodes["source0"]
	w.die(gone)
	w.run(3 * time.Second)
	for _, name := range w.names() {
		if h := w.nodes[name].holder; h != nil {
			for _, i := range h.items {
				if i.id.Source == gone.name {
					t.Errorf("%s still holds %v", name, i.id)
				}
			}
		}
	}
	w.addUp()
}

// TestAStageWithoutMembers: everything waits, and goes on when one comes.
func TestAStageWithoutMembers(t *testing.T) {
	w := newWorld(t, 1, 2, 4, 3, even)
	w.run(3 * time.Second)
	w.die(w.nodes["s1.0"])
	w.run(5 * time.Second)
	before := w.done
	w.run(5 * time.Second)
	if w.done != before {
		t.Errorf("%d micro-batches went round without the second stage", w.done-before)
	}
	w.add(1, 1, pass)
	w.run(10 * time.Second)
	if got := float64(w.done-before) / 10; got < 25 {
		t.Errorf("%.1f micro-batches a second with a new member", got)
	}
	w.addUp()
}
