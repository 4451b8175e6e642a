package step

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// stepClasses is the number of classes in most data sets of pictures that gossipnode knows.
	stepClasses = 10
	// stepBatches are used in turn, so that no step finds its pictures in the L1 cache due to the step before.
	stepBatches = 16
	// stepRate is small: by the end of a sample no model should have learned its random labels, since errors that
	// vanish become subnormal numbers, which are slow.
	stepRate = 1e-4
)

// stepShape is the shape of the pictures, or windows, of a model.
func stepShape(model string) dataset.Shape {
	switch {
	case nets.ReadsText(model):
		return dataset.Shape{Height: 1, Width: dataset.DefaultWindow, Channels: 1}
	case onGonum(model):
		return dataset.Shape{Height: dataset.Side, Width: dataset.Side, Channels: 1}
	}
	return dataset.Shape{Height: 32, Width: 32, Channels: 3}
}

// stepWork is the work of any contender: batches, and the state of momentum SGD.
type stepWork struct {
	batches                       []dataset.Batch
	start, params, velocity, grad tensor.Vector
	next                          int
	loss                          float64
}

// newStepWork draws batches of dense random pictures with random labels.
func newStepWork(s stepSettings, model nets.Model) *stepWork {
	w := &stepWork{batches: make([]dataset.Batch, stepBatches), start: make(tensor.Vector, model.Layout().Len())}
	source := rand.New(rand.NewPCG(s.seed, 0))
	if nets.ReadsText(s.model) {
		w.drawText(source, s.batch, s.shape().Width)
	}
	for i := range w.batches {
		b := &w.batches[i]
		if nets.ReadsText(s.model) {
			continue
		}
		b.Resize(s.batch, s.shape().Values())
		for j := range b.X {
			b.X[j] = 2*source.Float32() - 1
		}
		for j := range b.Labels {
			b.Labels[j] = uint8(source.IntN(stepClasses))
		}
	}
	model.Init(s.seed, w.start)
	return w.clone()
}

// drawText draws batches of windows of random bytes.
func (w *stepWork) drawText(source *rand.Rand, batch, window int) {
	bytes := make([]byte, len(w.batches)*batch*window+1)
	for i := range bytes {
		bytes[i] = byte(source.IntN(dataset.Bytes))
	}
	set, err := dataset.NewText(bytes, window)
	if err != nil {
		panic(err) // flags are within bounds
	}
	for i := range w.batches {
		set.Fill(&w.batches[i], i*batch, (i+1)*batch)
	}
}

// clone returns the same work for another contender; they share data that never changes.
func (w *stepWork) clone() *stepWork {
	n := len(w.start)
	other := &stepWork{
		batches: w.batches, start: w.start,
		params: make(tensor.Vector, n), velocity: make(tensor.Vector, n), grad: make(tensor.Vector, n),
	}
	other.reset()
	return other
}

// reset restores the initial parameters, so that all samples do the same work.
func (w *stepWork) reset() {
	copy(w.params, w.start)
	clear(w.velocity)
	w.next = 0
}

// batch returns the next batch, cyclically.
func (w *stepWork) batch() *dataset.Batch {
	b := &w.batches[w.next%len(w.batches)]
	w.next++
	return b
}

// train takes one step with the model.
func (w *stepWork) train(model nets.Model) {
	w.loss = model.Gradient(w.params, w.batch(), w.grad)
	tensor.MomentumRates{Rate: stepRate, Momentum: optim.DefaultMomentum}.Delta(w.grad, w.velocity, w.grad, w.params)
	tensor.Add(w.params, w.grad)
}

// newStepModel makes the measured model.
func newStepModel(s stepSettings) (nets.Model, error) {
	classes := stepClasses
	if nets.ReadsText(s.model) {
		classes = dataset.Bytes
	}
	model, err := nets.Sized(s.model, s.shape(), classes, s.gpt)
	if err != nil {
		return nil, fmt.Errorf("measuring a step of %s: %w", s.model, err)
	}
	return model, nil
}
