package nets

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of a network.
const (
	maxLayers = 64
	maxUnits  = 1 << 20
)

// evaluationBatch is the number of pictures that Evaluate takes at a time.
const evaluationBatch = 256

// MLP is a multilayer perceptron: fully connected layers with a rectifier after
// each but the last, and the cross entropy of the softmax as loss. Without
// hidden layers it is multinomial logistic regression. It is a Model.
type MLP struct {
	layout *tensor.Layout
	layers []layer
	room   room
	batch  dataset.Batch // for Evaluate
}

// layer is where a fully connected layer keeps its parameters: the weights as a
// matrix of in rows and out columns, then the biases.
type layer struct {
	in, out      int
	weight, bias int // offsets into the parameters
}

// room is what a pass computes in, for up to size pictures.
type room struct {
	size int
	// outputs[l] are the outputs of layer l, after the rectifier. Those of the
	// last are the logits, and its errors once the loss is known.
	outputs [][]float32
	// errors[l] is the gradient of the loss over outputs[l].
	errors [][]float32
}

// NewMLP makes a network from the sizes of its layers: the number of inputs,
// those of the hidden layers if any, and the number of classes.
func NewMLP(sizes ...int) (*MLP, error) {
	if err := validateSizes(sizes); err != nil {
		return nil, err
	}
	m := &MLP{}
	var specs []tensor.Spec
	for l := range len(sizes) - 1 {
		in, out := sizes[l], sizes[l+1]
		specs = append(specs,
			tensor.Spec{Name: fmt.Sprintf("layer%d.weight", l), Shape: []int{in, out}, Kind: tensor.Dense},
			tensor.Spec{Name: fmt.Sprintf("layer%d.bias", l), Shape: []int{out}, Kind: tensor.Bias})
		m.layers = append(m.layers, layer{in: in, out: out})
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return nil, fmt.Errorf("nets: laying out a network of sizes %v: %w", sizes, err)
	}
	m.layout = layout
	for l := range m.layers {
		weight, _ := layout.Lookup(specs[2*l].Name)
		bias, _ := layout.Lookup(specs[2*l+1].Name)
		m.layers[l].weight, m.layers[l].bias = weight.Offset, bias.Offset
	}
	return m, nil
}

func validateSizes(sizes []int) error {
	var errs []error
	if len(sizes) < 2 || len(sizes)-1 > maxLayers {
		errs = append(errs, fmt.Errorf("%w: sizes %v: want the inputs, the hidden layers and the classes, at most %d layers", ErrModel, sizes, maxLayers))
	}
	for _, n := range sizes {
		if n < 1 || n > maxUnits {
			errs = append(errs, fmt.Errorf("%w: sizes %v: each must be from 1 to %d", ErrModel, sizes, maxUnits))
			break
		}
	}
	if n := len(sizes); n > 0 && sizes[n-1] > 256 {
		errs = append(errs, fmt.Errorf("%w: %d classes: a label is one byte", ErrModel, sizes[n-1]))
	}
	return errors.Join(errs...)
}

// Layout implements Model.
func (m *MLP) Layout() *tensor.Layout { return m.layout }

// Init implements Model. Weights are even in ±sqrt(6/in) before a rectifier (He
// et al., 2015) and in ±sqrt(3/in) before the softmax, where no half is cut off;
// biases are zero. Nothing but integers, one square root and one product goes
// into a weight, so no platform rounds it differently.
func (m *MLP) Init(seed uint64, params tensor.Vector) {
	m.check(params)
	clear(params)
	rng := seeded.Rand(seed, seeded.Init, 0)
	for l, layer := range m.layers {
		variance := 6.0
		if l == len(m.layers)-1 {
			variance = 3
		}
		const half = 1 << 23
		unit := float32(math.Sqrt(variance/float64(layer.in))) / half
		weights := params[layer.weight : layer.weight+layer.in*layer.out]
		for i := range weights {
			weights[i] = unit * float32(int32(rng.Uint32()>>8)-half)
		}
	}
}

// Gradient implements Model.
func (m *MLP) Gradient(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) float64 {
	m.check(params)
	m.check(grad)
	n := batch.Len()
	if n == 0 {
		clear(grad)
		return 0
	}
	logits := m.forward(params, batch)
	loss := softmaxErrors(logits, batch.Labels)
	m.backward(params, batch, grad)
	return loss
}

// Evaluate implements Model.
func (m *MLP) Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64) {
	m.check(params)
	if set.Len() == 0 {
		return 0, 0
	}
	correct, sum := 0, 0.0
	for from := 0; from < set.Len(); from += evaluationBatch {
		set.Fill(&m.batch, from, min(from+evaluationBatch, set.Len()))
		logits := m.forward(params, &m.batch)
		for i, label := range m.batch.Labels {
			row := logits.Data[i*logits.Stride:][:logits.Cols]
			if argmax(row) == int(label) {
				correct++
			}
			sum += logSumExp(row) - float64(row[label])
		}
	}
	n := float64(set.Len())
	return float64(correct) / n, sum / n
}

func (m *MLP) check(v tensor.Vector) {
	if len(v) != m.layout.Len() {
		panic(fmt.Sprintf("nets: a vector of %d numbers for a model of %d parameters", len(v), m.layout.Len()))
	}
}

// forward computes the logits of the batch, one row a picture.
func (m *MLP) forward(params tensor.Vector, batch *dataset.Batch) blas32.General {
	n := batch.Len()
	m.grow(n)
	x := matrix(n, m.layers[0].in, batch.X)
	for l, layer := range m.layers {
		y := matrix(n, layer.out, m.room.outputs[l][:n*layer.out])
		multiply(blas.NoTrans, blas.NoTrans, x, m.weights(l, params), y)
		bias := params[layer.bias : layer.bias+layer.out]
		for i := range n {
			row := y.Data[i*layer.out : (i+1)*layer.out]
			if l == len(m.layers)-1 {
				addBias(row, bias)
			} else {
				addBiasRectify(row, bias)
			}
		}
		x = y
	}
	return x
}

// backward turns the errors of the logits, which softmaxErrors left in their
// place, into the gradient.
func (m *MLP) backward(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) {
	n := batch.Len()
	last := len(m.layers) - 1
	e := matrix(n, m.layers[last].out, m.room.outputs[last][:n*m.layers[last].out])
	for l := last; l >= 0; l-- {
		layer := m.layers[l]
		x := matrix(n, layer.in, batch.X)
		if l > 0 {
			x.Data = m.room.outputs[l-1][:n*layer.in]
		}
		multiply(blas.Trans, blas.NoTrans, x, e, m.weights(l, grad))
		sumRows(e, grad[layer.bias:layer.bias+layer.out])
		if l == 0 {
			return
		}
		below := matrix(n, layer.in, m.room.errors[l-1][:n*layer.in])
		multiply(blas.NoTrans, blas.Trans, e, m.weights(l, params), below)
		for i, out := range x.Data {
			if out == 0 { // the rectifier was shut
				below.Data[i] = 0
			}
		}
		e = below
	}
}

// weights are the weights of layer l within v, which has the model's layout.
func (m *MLP) weights(l int, v tensor.Vector) blas32.General {
	layer := m.layers[l]
	return matrix(layer.in, layer.out, v[layer.weight:layer.weight+layer.in*layer.out])
}

// grow makes room for n pictures.
func (m *MLP) grow(n int) {
	if n <= m.room.size {
		return
	}
	r := room{size: n}
	for l, layer := range m.layers {
		r.outputs = append(r.outputs, make([]float32, n*layer.out))
		if l < len(m.layers)-1 {
			r.errors = append(r.errors, make([]float32, n*layer.out))
		}
	}
	m.room = r
}
