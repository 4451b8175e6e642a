package nets

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of a network.
const (
	maxUnits   = 1 << 20
	maxClasses = 256 // a label is one byte
)

// network is a stack of layers under the cross entropy of the softmax. It is a
// Model.
type network struct {
	layout  *tensor.Layout
	layers  []layer
	spans   []span  // of the parameters, one a layer
	starts  []start // one a range of the layout
	inputs  int
	classes int
	// pass is how many pictures go through the layers and back at a time: few
	// enough that what the layers keep for the way back stays in the cache.
	pass   int
	batch  dataset.Batch // for Evaluate
	labels tensor.Vector
}

type span struct{ from, to int }

func (s span) of(v tensor.Vector) tensor.Vector { return v[s.from:s.to:s.to] }

// newNetwork lays out the parameters of the layers, those of one kind together: what
// codes an exchange takes runs of ranges of a kind.
func newNetwork(inputs, classes, pass int, layers ...layer) (*network, error) {
	n := &network{layers: layers, spans: make([]span, len(layers)), inputs: inputs, classes: classes, pass: pass}
	order := byKind(layers)
	var specs []tensor.Spec
	for _, i := range order {
		for _, p := range layers[i].params() {
			specs = append(specs, p.Spec)
			n.starts = append(n.starts, p.start)
		}
	}
	var err error
	if n.layout, err = tensor.NewLayout(specs...); err != nil {
		return nil, fmt.Errorf("nets: laying out a network: %w", err)
	}
	next, from := 0, 0
	for _, i := range order {
		to := from
		for range layers[i].params() {
			to += n.layout.At(next).Len
			next++
		}
		n.spans[i] = span{from, to}
		from = to
	}
	return n, nil
}

// byKind are the places of the layers in the order of their parameters:
// convolutions, norms, biases, then whatever ends in a matrix.
func byKind(layers []layer) []int {
	var order []int
	for _, kind := range []tensor.Kind{tensor.Conv, tensor.Norm, tensor.Bias, tensor.Dense} {
		for i, l := range layers {
			if p := l.params(); len(p) > 0 && p[0].Kind == kind {
				order = append(order, i)
			}
		}
	}
	return order
}

// validateEnds checks what every network starts and ends with.
func validateEnds(inputs, classes int) error {
	var errs []error
	if inputs < 1 || inputs > maxUnits {
		errs = append(errs, fmt.Errorf("%w: pictures of %d values: want 1 to %d", ErrModel, inputs, maxUnits))
	}
	if classes < 1 || classes > maxClasses {
		errs = append(errs, fmt.Errorf("%w: %d classes: want 1 to %d", ErrModel, classes, maxClasses))
	}
	return errors.Join(errs...)
}

// Layout implements Model.
func (m *network) Layout() *tensor.Layout { return m.layout }

// Init implements Model.
func (m *network) Init(seed uint64, params tensor.Vector) {
	m.check(params)
	rng := seeded.Rand(seed, seeded.Init, 0)
	for i, start := range m.starts {
		r := m.layout.At(i)
		start.set(params[r.Offset:r.Offset+r.Len], rng)
	}
}

// Gradient implements Model.
func (m *network) Gradient(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) float64 {
	m.check(params)
	m.check(grad)
	m.checkBatch(batch)
	n := batch.Len()
	if n == 0 {
		clear(grad)
		return 0
	}
	loss := 0.0
	for from := 0; from < n; from += m.pass {
		to := min(from+m.pass, n)
		p := pass{pictures: to - from, first: from == 0}
		e := m.forward(params, batch.X[from*m.inputs:to*m.inputs], p)
		m.labels = m.labels[:0]
		for _, l := range batch.Labels[from:to] {
			m.labels = append(m.labels, float32(l))
		}
		loss += ops.SoftmaxCrossEntropy(e, e, m.labels, 1/float64(n)) / float64(n)
		m.backward(params, grad, e, p)
	}
	return loss
}

// forward computes the logits of the pictures x, one row a picture.
func (m *network) forward(params, x tensor.Vector, p pass) tensor.Vector {
	for i, l := range m.layers {
		x = l.forward(m.spans[i].of(params), x, p)
	}
	return x
}

// backward adds to grad what follows from the gradient over the logits.
func (m *network) backward(params, grad, e tensor.Vector, p pass) {
	for i := len(m.layers) - 1; i >= 0; i-- {
		s := m.spans[i]
		e = m.layers[i].backward(s.of(params), s.of(grad), e, p)
	}
}

func (m *network) check(v tensor.Vector) {
	if len(v) != m.layout.Len() {
		panic(fmt.Sprintf("nets: a vector of %d numbers for a model of %d parameters", len(v), m.layout.Len()))
	}
}

func (m *network) checkBatch(b *dataset.Batch) {
	if len(b.X) != b.Len()*m.inputs {
		panic(fmt.Sprintf("nets: %d pictures of %d values together for a model of %d inputs", b.Len(), len(b.X), m.inputs))
	}
}

// Evaluate implements Model. It takes as many pictures at a time as a pass of the
// gradient does.
func (m *network) Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64) {
	m.check(params)
	if set.Len() == 0 {
		return 0, 0
	}
	correct, sum := 0, 0.0
	for from := 0; from < set.Len(); from += m.pass {
		set.Fill(&m.batch, from, min(from+m.pass, set.Len()))
		m.checkBatch(&m.batch)
		logits := m.forward(params, m.batch.X, pass{pictures: m.batch.Len(), first: from == 0})
		for i, label := range m.batch.Labels {
			row := logits[i*m.classes : (i+1)*m.classes]
			if ops.Argmax(row) == int(label) {
				correct++
			}
			sum += ops.LogSumExp(row) - float64(row[label])
		}
	}
	n := float64(set.Len())
	return float64(correct) / n, sum / n
}
