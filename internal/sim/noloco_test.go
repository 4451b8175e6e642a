package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// noLoCoFlock trains a flock by that rule, with other pairs each time; step adds a local step of a peer to its model.
type noLoCoFlock struct {
	peers          []noLoCo
	every          int // steps from one exchange to the next
	rate, momentum float32
	step           func(peer, step int, x tensor.Vector)
	rng            *rand.Rand
}

// newNoLoCo makes a flock all of whose peers have one model.
func newNoLoCo(peers int, model tensor.Vector, seed uint64) *noLoCoFlock {
	f := &noLoCoFlock{peers: make([]noLoCo, peers), rng: rand.New(rand.NewPCG(seed, 3))}
	for i := range f.peers {
		f.peers[i] = noLoCo{slices.Clone(model), slices.Clone(model), make(tensor.Vector, len(model))}
	}
	return f
}

// train lets all peers make the n-th step, from 1, and meet if it is time to.
func (f *noLoCoFlock) train(n int) {
	for i := range f.peers {
		f.step(i, n, f.peers[i].x)
	}
	if n%f.every > 0 {
		return
	}
	order := f.rng.Perm(len(f.peers))
	for k := 0; k < len(order); k += 2 {
		f.peers[order[k]].meet(&f.peers[order[k+1]], f.rate, f.momentum)
	}
}

// mean is the mean model, and apart the root mean square distance of the models from it.
func (f *noLoCoFlock) mean() (mean tensor.Vector, apart float64) {
	mean = make(tensor.Vector, len(f.peers[0].x))
	for _, peer := range f.peers {
		tensor.Axpy(mean, 1/float32(len(f.peers)), peer.x)
	}
	for _, peer := range f.peers {
		distance := tensor.Norm2(differenceOf(slices.Clone(mean), peer.x))
		apart += distance * distance / float64(len(f.peers))
	}
	return mean, math.Sqrt(apart)
}

// noLoCo trains a flock on MNIST by that rule. It returns the accuracy of the mean model in percent.
func (d *digits) noLoCo(t *testing.T, seed uint64, epochs, every int, rate, momentum float32) float64 {
	t.Helper()
	p, model, delta := d.pupils(t, seed, epochs), make(tensor.Vector, d.model.Layout().Len()), make(tensor.Vector, d.model.Layout().Len())
	d.model.Init(seed, model)
	f := newNoLoCo(pupilPeers, model, seed)
	f.every, f.rate, f.momentum = every, rate, momentum
	f.step = func(peer, step int, x tensor.Vector) {
		p.Step(peer, step, x, delta)
		tensor.Add(x, delta)
	}
	for step := 1; !p.over(); step++ {
		f.train(step)
	}
	mean, _ := f.mean()
	return d.accuracy(mean)
}

// TestNoLoCoLearns: eight peers learn by its rule in random pairs, each of them well and all nearly the same, and the
// momentum from one exchange to the next makes it sooner.
func TestNoLoCoLearns(t *testing.T) {
	const peers, steps = 8, 400
	task := newClusters(rand.New(rand.NewPCG(63, 0)))
	for _, seed := range []uint64{1, 2} {
		train := func(momentum float32) (worst, mean float64) {
			model, delta := make(tensor.Vector, weights), make(tensor.Vector, weights)
			initialise(nil, 0, model)
			f := newNoLoCo(peers, model, seed)
			f.every, f.rate, f.momentum = 10, 0.7, momentum
			l := newLearners(task, seed, peers, func(int) bool { return true })
			f.step = func(peer, step int, x tensor.Vector) {
				l.Step(peer, step, x, delta)
				tensor.Add(x, delta)
			}
			for n := 1; n <= steps; n++ {
				f.train(n)
			}
			middle, apart := f.mean()
			worst, mean = 100, task.accuracy(middle)
			for _, peer := range f.peers {
				worst = min(worst, task.accuracy(peer.x))
			}
			moved := tensor.Norm2(differenceOf(model, middle))
			t.Logf("seed %d, momentum %g: %.2f %%, the worst peer %.2f; they are %.2f from their mean, which has moved by %.2f", seed, momentum, mean, worst, apart, moved)
			if apart > moved/20 {
				t.Errorf("seed %d, momentum %g: models are %.2f from their mean, which has moved by %.2f", seed, momentum, apart, moved)
			}
			return worst, mean
		}
		worst, mean := train(0.5)
		_, without := train(0)
		if mean < 89.5 || worst < 88.5 || mean < without+1 {
			t.Errorf("seed %d: %.2f %%, the worst peer %.2f, and %.2f without momentum", seed, mean, worst, without)
		}
	}
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
