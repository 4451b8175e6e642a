package baseline_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// gates make the gate of each peer's machine.
func gates(t failer) map[string]func() baseline.Gate {
	return map[string]func() baseline.Gate{
		"bsp": func() baseline.Gate { return baseline.BSP{} },
		"asp": func() baseline.Gate { return baseline.ASP{} },
		"ssp": func() baseline.Gate {
			g, err := baseline.NewSSP(2)
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
		"dssp": func() baseline.Gate {
			g, err := baseline.NewDSSP(1, 5)
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
	}
}

// bounds are how far ahead a worker may be let by each gate.
var bounds = map[string]int{"bsp": 0, "asp": 1 << 30, "ssp": 2, "dssp": 5}

func paramServer(t failer, config baseline.Config, gate func() baseline.Gate) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		config.Self = id
		m, err := baseline.NewParamServer(config, gate())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// What the gate promises holds from end to end, whatever the speeds: one who goes on is
// no more than the bound ahead of the slowest.
func TestServerKeepsTheBound(t *testing.T) {
	for name := range gates(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(r, rapid.Uint64().Draw(r, "seed"), paramServer(r, baseline.Config{
					Deadline: 3 * time.Second,
				}, gates(r)[name]))
				traced(w)
				n := rapid.IntRange(1, 6).Draw(r, "peers")
				same := map[uint64]vector{}
				w.onStep = func(n *node) {
					clock := n.machine.(*baseline.ParamServer).Clock()
					if x, seen := same[clock]; name == "bsp" && seen && x != n.x {
						r.Fatalf("%s has %v at clock %d, another %v", n.id, n.x, clock, x)
					}
					same[clock] = n.x
					for _, other := range w.peers {
						if other.started && n.steps-other.steps > bounds[name]+1 { // the slowest may have been let, not yet told
							r.Fatalf("%s has made %d steps, %s %d", n.id, n.steps, other.id, other.steps)
						}
					}
				}
				for _, id := range names(n) {
					base := time.Duration(rapid.SampledFrom([]int{10, 20, 25, 100, 400}).Draw(r, "period")) * time.Millisecond
					w.join(id, func() time.Duration { return base/2 + time.Duration(w.rng.Int64N(int64(base))) })
				}
				w.view(time.Millisecond)
				for _, id := range w.names {
					w.peers[id].start()
				}
				w.queue.Run(5 * time.Second)
				for _, p := range w.peers {
					if p.steps < 4 {
						r.Fatalf("%s has made %d steps in five seconds", p.id, p.steps)
					}
				}
			})
		})
	}
}

// Whatever happens, no trainer waits for ever.
func TestServerSurvives(t *testing.T) {
	for name := range gates(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(r, rapid.Uint64().Draw(r, "seed"), paramServer(r, baseline.Config{
					Deadline: 400 * time.Millisecond,
				}, gates(r)[name]))
				w.patience = 8 * time.Second
				traced(w)
				w.staged = rapid.Bool().Draw(r, "staged")
				hardships(r, w, 0.05)
			})
		})
	}
}
