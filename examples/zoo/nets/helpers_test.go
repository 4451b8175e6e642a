package nets

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// digits is the shape of the pictures of glyphs and mnist.
var digits = dataset.Shape{Height: dataset.Side, Width: dataset.Side, Channels: 1}

// colours is the shape of the pictures of CIFAR.
var colours = dataset.Shape{Height: 32, Width: 32, Channels: 3}

// recipe is how the tests train: momentum SGD, or Adam if there is no momentum, with
// a warm-up over the first twentieth of the steps, then a cosine to zero.
type recipe struct {
	batch    int
	rate     float64
	momentum float64
	passes   float64
}

// learner trains one model on one supply of batches.
type learner struct {
	recipe     recipe
	model      Model
	batches    dataset.Batches
	batch      dataset.Batch
	x, g, v, s tensor.Vector // s for Adam only
	step       int
	lastStep   int
}

func newLearner(t testing.TB, model Model, set *dataset.Set, r recipe, seed uint64) *learner {
	t.Helper()
	batches, err := (&dataset.Data{Train: set}).Batches(r.batch, seed, dataset.Augment{})
	if err != nil {
		t.Fatal(err)
	}
	return learnerOf(model, batches, set.Len(), r)
}

// learnerOf learns from batches of so many pictures.
func learnerOf(model Model, batches dataset.Batches, pictures int, r recipe) *learner {
	n := model.Layout().Len()
	l := &learner{
		recipe: r, model: model, batches: batches,
		x: make(tensor.Vector, n), g: make(tensor.Vector, n), v: make(tensor.Vector, n), s: make(tensor.Vector, n),
		lastStep: int(r.passes * float64(pictures) / float64(r.batch)),
	}
	model.Init(2, l.x)
	return l
}

func (l *learner) done() bool { return l.step >= l.lastStep }

// learn takes one step and returns the loss before it.
func (l *learner) learn(t testing.TB) float64 {
	t.Helper()
	if err := l.batches.Next(&l.batch); err != nil {
		t.Fatal(err)
	}
	loss := l.model.Gradient(l.x, &l.batch, l.g)
	changes := slices.Clone(l.g)
	if l.recipe.momentum > 0 {
		tensor.MomentumRates{Rate: l.rate(), Momentum: l.recipe.momentum}.Delta(l.g, l.v, l.g, l.x)
	} else {
		tensor.AdamWRates{Rate: l.rate(), Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: uint64(l.step + 1)}.Delta(l.g, l.v, l.s, l.g, l.x)
	}
	for _, r := range l.model.Layout().Ranges() {
		if r.Kind == tensor.Statistic { // whose place in a gradient holds the step itself
			copy(l.g[r.Offset:r.Offset+r.Len], changes[r.Offset:])
		}
	}
	tensor.Add(l.x, l.g)
	l.step++
	return loss
}

// rate is that of the next step.
func (l *learner) rate() float64 {
	if warm := max(1, l.lastStep/20); l.step < warm {
		return l.recipe.rate * float64(l.step+1) / float64(warm)
	}
	return l.recipe.rate * 0.5 * (1 + math.Cos(math.Pi*float64(l.step)/float64(l.lastStep)))
}

// accuracy trains to the end and evaluates.
func accuracy(t testing.TB, model Model, train, heldOut *dataset.Set, r recipe) float64 {
	t.Helper()
	l := newLearner(t, model, train, r, 2)
	for !l.done() {
		l.learn(t)
	}
	a, _ := model.Evaluate(l.x, heldOut)
	return a
}

// ofPictures are the models that learn classes of pictures.
var ofPictures = []string{"mlp", "softmax", "cnn", "mobilenet-small", "resnet-small"}

// small are the models that tests train on every machine; deep are the others.
func small() []string { return append(slices.Clone(ofPictures), GPT, GRU) }

func deep() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return !Deep(name) })
}

// few is a number of examples that a pass has at least.
const few = 8

func mustModel(t testing.TB, name string) Model {
	t.Helper()
	shape, classes := digits, dataset.Classes
	if ReadsText(name) {
		shape, classes = dataset.Shape{Height: 1, Width: 32, Channels: 1}, dataset.Bytes
	}
	m, err := ByName(name, shape, classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
