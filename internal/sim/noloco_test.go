package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// noLoCo is a peer of a flock in lock-step by NoLoCo's rule (Kolehmainen et al., 2025): x has the local steps since
// the last exchange, slow the model of that time, velocity the momentum from one exchange to the next.
type noLoCo struct{ x, slow, velocity tensor.Vector }

// meet is an exchange of a pair, which moves two vectors each way.
func (a *noLoCo) meet(b *noLoCo, rate, momentum float32) {
	for i := range a.x {
		way := (a.x[i] - a.slow[i] + b.x[i] - b.slow[i]) / 2
		mean := (a.slow[i] + b.slow[i]) / 2
		for _, p := range []*noLoCo{a, b} {
			p.velocity[i] = momentum*p.velocity[i] + rate*(way+mean-p.slow[i])
			p.slow[i] += p.velocity[i]
			p.x[i] = p.slow[i]
		}
	}
}

// noLoCo trains a flock by that rule, with other pairs each time. It returns the accuracy of the mean model in percent.
func (d *digits) noLoCo(t *testing.T, seed uint64, epochs, every int, rate, momentum float32) float64 {
	t.Helper()
	p, rng := d.pupils(t, seed, epochs), rand.New(rand.NewPCG(seed, 3))
	n := d.model.Layout().Len()
	peers := make([]noLoCo, pupilPeers)
	for i := range peers {
		peers[i] = noLoCo{make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)}
		d.model.Init(seed, peers[i].x)
		copy(peers[i].slow, peers[i].x)
	}
	delta := make(tensor.Vector, n)
	for step := 1; !p.over(); step++ {
		for i := range peers {
			p.Step(i, step, peers[i].x, delta)
			tensor.Add(peers[i].x, delta)
		}
		if step%every == 0 {
			order := rng.Perm(pupilPeers)
			for k := 0; k < pupilPeers; k += 2 {
				peers[order[k]].meet(&peers[order[k+1]], rate, momentum)
			}
		}
	}
	clear(delta)
	for _, peer := range peers {
		tensor.Axpy(delta, 1.0/pupilPeers, peer.x)
	}
	return d.accuracy(delta)
}

// TestNoLoCoOfTwoThatAgree: for two peers with one model its rule is that of DiLoCo.
func TestNoLoCoOfTwoThatAgree(t *testing.T) {
	a, b := noLoCo{tensor.Vector{3}, tensor.Vector{1}, tensor.Vector{2}}, noLoCo{tensor.Vector{5}, tensor.Vector{1}, tensor.Vector{2}}
	a.meet(&b, 0.5, 0.5)
	if a.velocity[0] != 2.5 || a.x[0] != 3.5 || b.x[0] != 3.5 { // 0.5·2 + 0.5·3
		t.Errorf("they come to %+v and %+v", a, b)
	}
}

// TestOuterMomentum logs what momentum from one exchange to the next is worth, beside NoLoCo's, which moves twice the
// bytes.
func TestOuterMomentum(t *testing.T) {
	if !*tables {
		t.Skip("give -tables to try outer momentum")
	}
	const every = 64
	e, d := extentOf(t, 6), loadDigits(t)
	t.Log(columns)
	for _, momentum := range []float64{0, 0.3, 0.5} {
		l := lesson{pace: averaging.Pace{Every: every}, policy: quant.Policy{Codec: "lattice6+4"}, aware: true, outer: momentum}
		d.lessons(t, fmt.Sprintf("outer momentum %g", momentum), e, l)
	}
	for _, momentum := range []float32{0.3, 0.5} {
		for _, seed := range e.seeds {
			t.Logf("NoLoCo, rate 0.7, momentum %g, seed %d: %.2f %%", momentum, seed, d.noLoCo(t, seed, e.epochs, every, 0.7, momentum))
		}
	}
}
