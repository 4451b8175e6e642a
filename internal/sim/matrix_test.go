package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// bowl is a task whose gradients can be computed again in float64: each peer is drawn to a
// place of its own, and shaken. It keeps the models at which gradients were asked for.
type bowl struct {
	steady
	rng  *rand.Rand
	seen [][][]float32 // by peer and step
}

func newBowl(n int) *bowl {
	return &bowl{rng: rand.New(rand.NewPCG(3, uint64(n))), seen: make([][][]float32, n)}
}

// Duration implements sim.Task: peers are of unequal speed.
func (b *bowl) Duration(peer, _, _ int) time.Duration {
	return time.Duration(1+peer%3+b.rng.IntN(9)) * time.Millisecond
}

// slope is the gradient of peer's step at the value x of number i.
func (b *bowl) slope(peer, step, i int, x float64) float64 {
	shake := float64((7*peer+13*step+31*i)%17)/17 - 0.5
	return 0.05*(x-float64(peer%5)) + 0.1*shake
}

// Gradient implements sim.Task.
func (b *bowl) Gradient(_, peer, step int, x, grad []float32) (loss float64, samples int, err error) {
	b.seen[peer] = append(b.seen[peer], append([]float32(nil), x...))
	for i := range grad {
		grad[i] = float32(b.slope(peer, step, i, float64(x[i])))
	}
	return 0, 1, nil
}

// TestDPSGDIsAMatrixProduct: in every round each model is X·W − γ·G(X), of the models of one
// moment, in spite of unequal speeds, delays and slices in flight: after 50 rounds they equal
// what a product of matrices in float64 comes to.
func TestDPSGDIsAMatrixProduct(t *testing.T) {
	t.Parallel()
	const rounds, values = 50, 90
	for i, n := range []int{2, 8, 13, 7, 8, 9} {
		shape := append([]topology.Shape{topology.Ring, topology.Ring}, topology.Shapes()...)[i]
		b := newBowl(n)
		machine := func(i int) averaging.Machine {
			m, err := baseline.NewDPSGD(baseline.Config{Self: nameOf(i)})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		f := newFlock(t, plan{
			seed: 5, peers: n, values: values, sliceLen: 16, machine: machine,
			config: sim.Config{Task: b, Topology: shape, Link: sim.Link{Delay: 2 * time.Millisecond, Bandwidth: 2e5}},
		})
		x := mat.NewDense(values, n, nil)
		for p, r := range f.replicas {
			r.Snapshot(f.scratch)
			for i, v := range f.scratch {
				x.Set(i, p, float64(v))
			}
		}
		for slices.ContainsFunc(b.seen, func(x [][]float32) bool { return len(x) < rounds }) {
			f.world.Run(f.world.Now() + 10*time.Millisecond)
		}
		w := mixing(t, shape, n)
		worst := 0.0
		for round := range rounds {
			next := mat.NewDense(values, n, nil)
			if next.Copy(x); round > 0 {
				next.Mul(x, w)
			}
			for p := range n {
				for i := range values {
					worst = max(worst, math.Abs(float64(b.seen[p][round][i])-x.At(i, p)))
					next.Set(i, p, next.At(i, p)-b.slope(p, round, i, x.At(i, p)))
				}
			}
			x = next
		}
		t.Logf("%s of %d: at most %.2g away in %d rounds", shape, n, worst, rounds)
		if !(worst <= 1e-5) {
			t.Errorf("%s of %d: a value is %g away, at most 1e-5", shape, n, worst)
		}
	}
}

// mixing is W of an overlay's links: 1/(1+c) of the larger degree c of the two ends.
func mixing(t *testing.T, shape topology.Shape, n int) *mat.Dense {
	t.Helper()
	members := make([]topology.Member, n)
	index := make(map[topology.PeerID]int)
	for i := range members {
		members[i].ID = nameOf(i)
		index[nameOf(i)] = i
	}
	view, err := shape.View(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	degree := func(id topology.PeerID) int { return len(overlay.Neighbours(id)) }
	w := mat.NewDense(n, n, nil)
	for e := range overlay.Edges() {
		share := 1 / float64(1+max(degree(e.Active), degree(e.Passive)))
		w.Set(index[e.Active], index[e.Passive], share)
		w.Set(index[e.Passive], index[e.Active], share)
	}
	for i := range n {
		w.Set(i, i, 1-mat.Sum(w.RowView(i)))
	}
	return w
}
