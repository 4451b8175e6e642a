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
	for _, n := range []int{2, 3, 8, 13} {
		b := &bowl{rng: rand.New(rand.NewPCG(3, uint64(n))), seen: make([][][]float32, n)}
		machine := func(i int) averaging.Machine {
			m, err := baseline.NewDPSGD(baseline.Config{Self: nameOf(i)})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		f := newFlock(t, plan{
			seed: 5, peers: n, values: values, sliceLen: 16, machine: machine,
			config: sim.Config{Task: b, Link: sim.Link{Delay: 2 * time.Millisecond, Bandwidth: 2e5}},
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
		w := ringWeights(t, n)
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
		t.Logf("%d peers: at most %.2g away in %d rounds", n, worst, rounds)
		if !(worst <= 1e-5) {
			t.Errorf("%d peers: a value is %g away, at most 1e-5", n, worst)
		}
	}
}

// ringWeights is W of the ring in the view's order.
func ringWeights(t *testing.T, n int) *mat.Dense {
	t.Helper()
	members := make([]topology.Member, n)
	index := make(map[topology.PeerID]int)
	for i := range members {
		members[i].ID = nameOf(i)
		index[nameOf(i)] = i
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	w := mat.NewDense(n, n, nil)
	share := 1.0 / 3
	if n == 2 {
		share = 0.5
	}
	for i := range n {
		a, b := index[view.At(i).ID], index[view.At((i+1)%n).ID]
		if n == 2 && i == 1 {
			break
		}
		w.Set(a, b, share)
		w.Set(b, a, share)
	}
	for i := range n {
		w.Set(i, i, 1-mat.Sum(w.RowView(i)))
	}
	return w
}
