package baseline_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

func dpsgd(t failer, config baseline.Config) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		config.Self = id
		m, err := baseline.NewDPSGD(config)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// In a healthy flock each step is followed by an exchange with each neighbour, and nobody
// gets further ahead than the flock is wide.
func TestNeighboursInLockStep(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, 5, dpsgd(t, baseline.Config{}))
			traced(w)
			for i, id := range names(n) {
				base := time.Duration(10+5*i) * time.Millisecond
				w.join(id, func() time.Duration { return base/2 + time.Duration(w.rng.Int64N(int64(base))) })
			}
			w.view(time.Millisecond)
			w.onStep = func(p *node) {
				for _, other := range w.peers {
					if !other.over && p.steps-other.steps > n/2+1 {
						t.Fatalf("%s has made %d steps, %s %d", p.id, p.steps, other.id, other.steps)
					}
				}
			}
			for _, id := range w.names {
				w.peers[id].start()
			}
			w.queue.Run(10 * time.Second)
			for _, p := range w.peers {
				if p.steps < 50 {
					t.Errorf("%s has made %d steps", p.id, p.steps)
				}
				each := len(w.overlay.Neighbours(p.id))
				if d := p.met - each*p.steps; d < -2*each || d > 2*each {
					t.Errorf("%s took part in %d exchanges in %d steps, want %d each", p.id, p.met, p.steps, each)
				}
			}
			w.onStep = nil
			w.settle(100 * time.Millisecond)
		})
	}
}

// Whatever happens, no trainer waits for ever.
func TestNeighboursSurvive(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, rapid.Uint64().Draw(r, "seed"), dpsgd(r, baseline.Config{Deadline: 400 * time.Millisecond}))
		w.patience = 8 * time.Second
		traced(w)
		hardships(r, w, 0.05)
	})
}
