package nets

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// digits is the shape of the pictures of glyphs and mnist.
var digits = dataset.Shape{Height: dataset.Side, Width: dataset.Side, Channels: 1}

// recipe is how the tests train: momentum SGD, a warm-up over the first twentieth
// of the steps, then a cosine to zero.
type recipe struct {
	batch    int
	rate     float64
	momentum float64
	passes   float64
}

// learner trains one model on one set.
type learner struct {
	recipe   recipe
	model    Model
	sampler  *dataset.Sampler
	batch    dataset.Batch
	x, v, g  tensor.Vector
	step     int
	lastStep int
}

func newLearner(t testing.TB, model Model, set *dataset.Set, r recipe, seed uint64) *learner {
	t.Helper()
	sampler, err := dataset.NewSampler(set, r.batch, seed)
	if err != nil {
		t.Fatal(err)
	}
	n := model.Layout().Len()
	l := &learner{
		recipe: r, model: model, sampler: sampler,
		x: make(tensor.Vector, n), v: make(tensor.Vector, n), g: make(tensor.Vector, n),
		lastStep: int(r.passes * float64(set.Len()) / float64(r.batch)),
	}
	model.Init(1, l.x)
	return l
}

func (l *learner) done() bool { return l.step >= l.lastStep }

// learn takes one step and returns the loss before it.
func (l *learner) learn() float64 {
	warm := max(1, l.lastStep/20)
	rate := l.recipe.rate * 0.5 * (1 + math.Cos(math.Pi*float64(l.step)/float64(l.lastStep)))
	if l.step < warm {
		rate = l.recipe.rate * float64(l.step+1) / float64(warm)
	}
	l.sampler.Next(&l.batch)
	loss := l.model.Gradient(l.x, &l.batch, l.g)
	tensor.MomentumStep(l.g, l.v, l.g, l.x, tensor.MomentumRates{Rate: rate, Momentum: l.recipe.momentum})
	tensor.Add(l.x, l.g)
	l.step++
	return loss
}

// accuracy trains to the end and evaluates.
func accuracy(t testing.TB, model Model, train, heldOut *dataset.Set, r recipe) float64 {
	t.Helper()
	l := newLearner(t, model, train, r, 2)
	for !l.done() {
		l.learn()
	}
	a, _ := model.Evaluate(l.x, heldOut)
	return a
}

func mustModel(t testing.TB, name string) Model {
	t.Helper()
	m, err := ByName(name, digits, dataset.Classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
