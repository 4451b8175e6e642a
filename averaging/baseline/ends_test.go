package baseline_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// endsAlike checks that those who live have one model.
func endsAlike(t failer, w *world) {
	models := map[vector][]topology.PeerID{}
	for _, id := range w.names {
		if p := w.peers[id]; p.alive {
			models[p.x] = append(models[p.x], id)
		}
	}
	if len(models) > 1 {
		t.Fatalf("%d models at the end: %v", len(models), models)
	}
}

// All hear at different moments that the run is over, some of them many rounds after the
// first, some words and transfers are lost, a worker may die meanwhile: in the end all have
// one model.
func TestAllEndWithOneModel(t *testing.T) {
	machines := map[string]func(failer, baseline.Config) func(topology.PeerID) collective.Machine{"allreduce": allReduce}
	for name, gate := range gates(t) {
		machines[name] = func(t failer, c baseline.Config) func(topology.PeerID) collective.Machine {
			return paramServer(t, c, gate)
		}
	}
	for name, machine := range machines {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(r, rapid.Uint64().Draw(r, "seed"), machine(r, baseline.Config{
					Deadline: 8 * time.Second,
				}))
				traced(w)
				w.loss = rapid.SampledFrom([]float64{0, 0.05}).Draw(r, "loss")
				w.breaks = rapid.SampledFrom([]float64{0, 0.004}).Draw(r, "breaks")
				for _, id := range names(rapid.IntRange(1, 6).Draw(r, "peers")) {
					w.join(id, steady(time.Duration(rapid.IntRange(10, 30).Draw(r, "period"))*time.Millisecond)).start()
				}
				w.view(time.Millisecond)
				w.queue.Run(time.Second)
				spread := rapid.IntRange(1, 2000).Draw(r, "spread")
				if rapid.Bool().Draw(r, "death") {
					victim := rapid.SampledFrom(w.names).Draw(r, "victim")
					w.queue.After(time.Duration(rapid.IntRange(0, spread).Draw(r, "when"))*time.Millisecond, func() {
						if w.coordinator() != victim {
							w.die(victim, 50*time.Millisecond)
						}
					})
				}
				w.settle(time.Duration(spread) * time.Millisecond)
				endsAlike(r, w)
			})
		})
	}
}
