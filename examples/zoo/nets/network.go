package nets

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Bounds of a network.
const (
	maxUnits   = 1 << 20
	maxClasses = 256 // a label is one byte
)

// glance is how many examples are evaluated together.
const glance = 64

// network is a Model of layers, with the cross entropy of the softmax as its loss.
type network struct {
	model   *nn.Model
	trainer *nn.Trainer // nil before the first batch
	ready   func(from int)
	factors func(at int, inputs, errors tensor.Vector)
	classes int
	batch   dataset.Batch // for Evaluate
	labels  tensor.Vector
	logits  tensor.Vector
}

// beforeReLU starts a layer's weights so that the outputs of the ReLU after it vary as much as its inputs (He et al.,
// 2015); with torch's start they get smaller from layer to layer.
func beforeReLU(l nn.Layer, fan int) nn.Layer {
	return nn.WithStart(l, nn.Uniform(math.Sqrt(6/float64(fan))))
}

// asIs is beforeReLU for a layer without a ReLU.
func asIs(l nn.Layer, fan int) nn.Layer {
	return nn.WithStart(l, nn.Uniform(math.Sqrt(3/float64(fan))))
}

// newNetwork makes the model of layers for examples of a shape.
func newNetwork(shape []int, layers ...nn.Layer) (*network, error) {
	model, err := nn.Sequential(layers...).Build(shape...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return networkOf(model), nil
}

// newDeep makes a model of layers for pictures.
func newDeep(shape dataset.Shape, classes int, layers []nn.Layer) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	return newNetwork([]int{shape.Height, shape.Width, shape.Channels}, layers...)
}

func networkOf(model *nn.Model) *network {
	return &network{model: model, classes: model.Out().Width()}
}

// Layout implements Model.
func (m *network) Layout() *tensor.Layout { return m.model.Layout() }

// Init implements Model.
func (m *network) Init(seed uint64, params tensor.Vector) {
	copy(params, m.model.Init(seed).Vector())
}

// Gradient implements Model.
func (m *network) Gradient(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) float64 {
	if m.trainer == nil { // made for the batches that come: those of deep models take gigabytes
		m.trainer = m.model.Trainer(batch.Len(), nn.CrossEntropy())
	}
	m.trainer.Ready, m.trainer.Factors = m.ready, m.factors
	m.labels = nn.Labels(m.labels[:0], batch.Labels)
	return m.trainer.Gradient(params, grad, batch.X, m.labels)
}

// OnReady implements Model.
func (m *network) OnReady(tell func(from int)) { m.ready = tell }

// OnFactors implements Model.
func (m *network) OnFactors(tell func(at int, inputs, errors tensor.Vector)) { m.factors = tell }

// Readiness implements Model.
func (m *network) Readiness() []nn.Ready { return m.model.Readiness() }

// Evaluate implements Model.
func (m *network) Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64) {
	correct, sum, n := 0, 0.0, 0
	m.each(params, set, func(row tensor.Vector, label uint8) {
		if nn.Argmax(row) == int(label) {
			correct++
		}
		sum += nn.LogSumExp(row) - float64(row[label])
		n++
	})
	if n == 0 {
		return 0, 0
	}
	return float64(correct) / float64(n), sum / float64(n)
}

// each calls visit with the logits for each label of a set.
func (m *network) each(params tensor.Vector, set *dataset.Set, visit func(logits tensor.Vector, label uint8)) {
	for from := 0; from < set.Len(); from += glance {
		set.Fill(&m.batch, from, min(from+glance, set.Len()))
		if n := len(m.batch.Labels) * m.classes; len(m.logits) < n {
			m.logits = make(tensor.Vector, n)
		}
		logits := m.logits[:len(m.batch.Labels)*m.classes]
		m.model.Predict(params, logits, m.batch.X)
		for i, label := range m.batch.Labels {
			visit(logits[i*m.classes:(i+1)*m.classes], label)
		}
	}
}
