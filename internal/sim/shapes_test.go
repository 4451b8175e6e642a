package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// TestTreeAgainstRing: AllReduce over a tree takes fewer steps one after the other, so it is
// faster where links are long; round a ring each member sends fewer bytes, so it is faster
// where links are narrow. Halving and doubling is about as fast as the better of the two.
func TestTreeAgainstRing(t *testing.T) {
	t.Parallel()
	const n, rounds = 16, 4
	took := func(link sim.Link, port float64, shape topology.Shape) time.Duration {
		r := race{peers: n, batch: 32, speeds: []float64{3200}, steps: n * rounds, link: link, port: port}
		return r.time(t, allReduce(baseline.Config{Topology: shape})) / rounds
	}
	for _, world := range []struct {
		name  string
		link  sim.Link
		port  float64
		tree  bool // is to be faster
		ratio float64
	}{
		{"50 ms, wide", sim.Link{Delay: 50 * time.Millisecond, Bandwidth: 1e9}, 0, true, 2.5},
		{"0.05 ms, 100 kB/s for each member", sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e9}, 1e5, false, 1.5},
	} {
		halving, ring, tree := took(world.link, world.port, topology.Exponential), took(world.link, world.port, topology.Ring), took(world.link, world.port, topology.Tree)
		t.Logf("%s: a round takes %s by halving, %s round a ring, %s over a tree", world.name, halving, ring, tree)
		faster, slower := ring, tree
		if world.tree {
			faster, slower = tree, ring
		}
		if float64(slower) < world.ratio*float64(faster) || float64(halving) > 1.3*float64(faster) {
			t.Errorf("%s: %s by halving, %s round a ring, %s over a tree", world.name, halving, ring, tree)
		}
	}
}

// TestSumsOfEveryShapeAreOneModel: with every shape of AllReduce, and a codec that rounds, all have one model in the
// end, byte for byte.
func TestSumsOfEveryShapeAreOneModel(t *testing.T) {
	t.Parallel()
	for _, shape := range []topology.Shape{topology.Exponential, topology.Ring, topology.Tree} {
		for _, n := range []int{2, 5, 8} {
			b := newBowl(n)
			f := newFlock(t, plan{
				seed: 5, peers: n, values: 500, sliceLen: 70, codec: "int8", initial: alike,
				machine: func(i int) averaging.Machine {
					m, err := baseline.NewAllReduce(baseline.Config{Self: nameOf(i), Topology: shape})
					if err != nil {
						t.Fatal(err)
					}
					return m
				},
				config: sim.Config{Task: b, Topology: shape, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}},
			})
			f.world.Run(500 * time.Millisecond)
			steps := 0
			for p := range n {
				steps = max(steps, len(b.seen[p]))
			}
			for step := range steps - 1 {
				for p := range n {
					if len(b.seen[p]) > step && !slices.Equal(b.seen[p][step], b.seen[0][step]) {
						t.Fatalf("%s of %d: peer %d has another model at step %d", shape, n, p, step)
					}
				}
			}
			if steps < 10 {
				t.Errorf("%s of %d: %d steps", shape, n, steps)
			}
		}
	}
}

// alike gives all peers one model to begin with.
func alike(_ *rand.Rand, _ int, x tensor.Vector) {
	for i := range x {
		x[i] = float32(i%7) / 7
	}
}
