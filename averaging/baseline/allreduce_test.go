package baseline_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

func allReduce(t failer, config baseline.Config) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		config.Self = id
		m, err := baseline.NewAllReduce(config)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func traced(w *world) {
	if os.Getenv("TRACE") != "" {
		w.trace = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	}
}

// versions checks that models of the same version are the same, and how far apart the
// rounds are of those who have just made a step together.
type versions struct {
	models map[string]vector
	count  map[string]int
}

func (v *versions) check(n *node) {
	version := n.machine.(interface{ Version() string }).Version()
	if version == "" {
		return
	}
	if x, seen := v.models[version]; seen && x != n.x {
		n.world.t.Fatalf("at %s, %s has %v for version %s, another %v", n.world.queue.Now(), n.id, n.x, version, x)
	}
	v.models[version] = n.x
	v.count[version]++
}

func sameBytes(w *world) *versions {
	v := &versions{models: map[string]vector{}, count: map[string]int{}}
	w.onStep = v.check
	return v
}

func TestAllReduceOfHealthyPeers(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 16} {
		t.Run(fmt.Sprintf("%d peers", n), func(t *testing.T) {
			w := newWorld(t, 3, allReduce(t, baseline.Config{}))
			traced(w)
			v := sameBytes(w)
			for _, id := range names(n) {
				w.join(id, steady(10*time.Millisecond)).start()
			}
			w.view(time.Millisecond)
			w.queue.Run(3 * time.Second)
			if first := w.peers[w.names[0]]; first.updates < 4 {
				t.Errorf("%d updates in three seconds", first.updates)
			}
			for version, count := range v.count {
				if count > n {
					t.Errorf("%d steps led to version %s", count, version)
				}
			}
			if len(v.models) > w.peers[w.names[0]].updates+1 {
				t.Errorf("%d models after %d updates", len(v.models), w.peers[w.names[0]].updates)
			}
			w.settle(100 * time.Millisecond)
			endsAlike(t, w)
		})
	}
}

// Whatever happens, no trainer waits for ever, and equal versions are equal models.
func TestAllReduceSurvives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, rapid.Uint64().Draw(r, "seed"), allReduce(r, baseline.Config{
			Deadline: 400 * time.Millisecond,
		}))
		traced(w)
		sameBytes(w)
		w.patience, w.staged = 8*time.Second, rapid.Bool().Draw(r, "staged")
		w.onAction = func(n *node, a collective.Action) {
			if a.Kind == collective.Update && !n.waiting {
				r.Fatalf("at %s, %s updates by a gradient that is not done", w.queue.Now(), n.id)
			}
		}
		hardships(r, w, 0.004)
	})
}

// TestACopyOutlastsRounds shows that a joiner whose copy of the parameters takes longer than rounds do gets it, and then
// takes part: no round breaks it off, and no update changes what it is of.
func TestACopyOutlastsRounds(t *testing.T) {
	w := newWorld(t, 5, allReduce(t, baseline.Config{}))
	traced(w)
	sameBytes(w)
	w.copying = 100 * time.Millisecond
	for _, id := range names(4)[:3] {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(3 * time.Second)
	late := w.join(names(4)[3], steady(10*time.Millisecond))
	late.x = vector{1, 2, 3}
	late.start()
	w.view(time.Millisecond)
	w.queue.Run(8 * time.Second)
	if late.updates < 10 || late.x != w.peers["aa"].x && late.updates == w.peers["aa"].updates {
		t.Errorf("it has made %d updates, aa %d", late.updates, w.peers["aa"].updates)
	}
	w.settle(100 * time.Millisecond)
	endsAlike(t, w)
}

// TestNobodyCopiesInHealthyRounds shows that a member which says where it is just before it hears that the sum counts is sent no
// copy: it would lose a gradient, and all of them their momentum.
func TestNobodyCopiesInHealthyRounds(t *testing.T) {
	w := newWorld(t, 9, allReduce(t, baseline.Config{Deadline: 400 * time.Millisecond}))
	traced(w)
	for _, id := range names(3) {
		w.join(id, steady(time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(2 * time.Second)
	w.onAction = func(n *node, a collective.Action) {
		if a.Kind == collective.Send && a.Transfer.From == collective.Parameters || a.Kind == collective.Update && a.Forget {
			t.Errorf("at %s, %s: %s", w.queue.Now(), n.id, a)
		}
	}
	w.queue.Run(2 * time.Minute)
	if made := w.peers["aa"].updates; made < 1000 {
		t.Errorf("%d updates: the test shows little", made)
	}
}
