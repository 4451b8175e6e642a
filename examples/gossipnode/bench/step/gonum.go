package step

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// gonumNet is a model as a user of gonum's blas32 would write it, the reference of bench step: one call for each
// product, loops for the rest, and reused memory. Parameters lie as in the layout of the model that it is compared
// with.
type gonumNet struct {
	layers  []gonumLayer
	classes int
	pixels  int // in the output of the last convolution
}

// gonumLayer is one layer, for batches of one size.
type gonumLayer interface {
	// forward computes the outputs, which stay valid until the next call. The layer
	// keeps x for backward.
	forward(params, x []float32) []float32
	// backward sets this layer's part of the gradient from the errors of its outputs, and returns the errors of its
	// inputs if wanted.
	backward(params, grad, errors []float32, wanted bool) []float32
}

// onGonum tells whether a model has a reference on gonum: those of dense layers and of plain convolutions.
func onGonum(model string) bool { return slices.Contains([]string{"mlp", "softmax", "cnn"}, model) }

// newGonumNet makes the network of a layout: a ReLU and a pool after each convolution, a ReLU after each dense layer
// but the last. It is nil if the layout has other layers too.
func newGonumNet(layout *tensor.Layout, shape dataset.Shape, batch int) *gonumNet {
	net := &gonumNet{}
	for _, weight := range layout.Ranges() {
		bias, ok := layout.Lookup(strings.TrimSuffix(weight.Name, "weight") + "bias")
		at := offsets{weight.Offset, bias.Offset}
		switch {
		case weight.Kind == tensor.Bias:
		case !ok:
			return nil
		case weight.Kind == tensor.Dense && len(weight.Shape) == 2:
			net.addDense(at, weight.Shape, batch)
		case weight.Kind == tensor.Conv && len(weight.Shape) == 4 && weight.Shape[2] == 3 && weight.Shape[1] == shape.Channels:
			shape = net.addConvolution(at, shape, weight.Shape[0], batch)
			net.pixels = shape.Height * shape.Width
		default:
			return nil
		}
	}
	return net
}

// offsets has the places of a layer's weights and biases among the parameters.
type offsets struct{ weight, bias int }

// addDense adds a dense layer, after a ReLU if another dense layer comes before it.
func (g *gonumNet) addDense(at offsets, sizes []int, batch int) {
	if g.classes > 0 {
		g.layers = append(g.layers, &gonumRectifier{})
	} else if g.pixels > 0 {
		g.layers = append(g.layers, newGonumFlatten(batch, g.pixels, sizes[1]/g.pixels))
	}
	g.classes = sizes[0]
	d := &gonumDense{offsets: at, rows: batch, in: sizes[1], out: sizes[0]}
	d.y, d.below = make([]float32, batch*d.out), make([]float32, batch*d.in)
	g.layers = append(g.layers, d)
}

// step takes one step of momentum SGD.
func (g *gonumNet) step(w *stepWork) {
	w.loss = g.gradient(w.params, w.batch(), w.grad)
	params, velocity, grad := blasVector(w.params), blasVector(w.velocity), blasVector(w.grad)
	blas32.Scal(optim.DefaultMomentum, velocity)
	blas32.Axpy(1, grad, velocity)
	blas32.Axpy(-stepRate, velocity, params)
}

// gradient sets grad and returns the loss.
func (g *gonumNet) gradient(params []float32, batch *dataset.Batch, grad []float32) (loss float64) {
	x := []float32(batch.X)
	for _, layer := range g.layers {
		x = layer.forward(params, x)
	}
	loss = gonumErrors(x, batch.Labels, g.classes)
	for i := len(g.layers) - 1; i >= 0; i-- {
		x = g.layers[i].backward(params, grad, x, i > 0)
	}
	return loss
}

// gonumErrors replaces logits by the gradient of the mean cross entropy over them, and returns that mean.
func gonumErrors(logits []float32, labels []uint8, classes int) (loss float64) {
	share := 1 / float64(len(labels))
	for i, label := range labels {
		row := logits[i*classes : (i+1)*classes]
		largest := float64(slices.Max(row))
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) - largest)
		}
		total := largest + math.Log(sum)
		loss += share * (total - float64(row[label]))
		for j, v := range row {
			p := math.Exp(float64(v) - total)
			if j == int(label) {
				p--
			}
			row[j] = float32(share * p)
		}
	}
	return loss
}

// gonumDense is a fully connected layer.
type gonumDense struct {
	offsets
	rows, in, out int
	x, y, below   []float32
}

func (d *gonumDense) forward(params, x []float32) []float32 {
	d.x = x
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, blasMatrix(d.rows, d.in, x), d.weights(params), 0, blasMatrix(d.rows, d.out, d.y))
	addToRows(d.y, params[d.bias:d.bias+d.out])
	return d.y
}

func (d *gonumDense) backward(params, grad, errors []float32, wanted bool) []float32 {
	e := blasMatrix(d.rows, d.out, errors)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, e, blasMatrix(d.rows, d.in, d.x), 0, d.weights(grad))
	sumOfRows(errors, grad[d.bias:d.bias+d.out])
	if !wanted {
		return nil
	}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, e, d.weights(params), 0, blasMatrix(d.rows, d.in, d.below))
	return d.below
}

func (d *gonumDense) weights(v []float32) blas32.General {
	return blasMatrix(d.out, d.in, v[d.weight:d.weight+d.in*d.out])
}

// gonumRectifier works in place: its outputs are the inputs of the next layer.
type gonumRectifier struct{ y []float32 }

func (r *gonumRectifier) forward(_, x []float32) []float32 {
	for i, v := range x {
		x[i] = max(v, 0)
	}
	r.y = x
	return x
}

func (r *gonumRectifier) backward(_, _, errors []float32, _ bool) []float32 {
	for i, v := range r.y {
		if v == 0 {
			errors[i] = 0
		}
	}
	return errors
}

// addToRows adds row to each row of x.
func addToRows(x, row []float32) {
	for ; len(x) > 0; x = x[len(row):] {
		blas32.Axpy(1, blasVector(row), blasVector(x[:len(row)]))
	}
}

// sumOfRows sets sum to the sum of the rows of x.
func sumOfRows(x, sum []float32) {
	clear(sum)
	for ; len(x) > 0; x = x[len(sum):] {
		blas32.Axpy(1, blasVector(x[:len(sum)]), blasVector(sum))
	}
}

func blasVector(v []float32) blas32.Vector {
	return blas32.Vector{N: len(v), Inc: 1, Data: v}
}

func blasMatrix(rows, cols int, v []float32) blas32.General {
	if len(v) != rows*cols {
		panic(fmt.Sprintf("bench step: a matrix of %d by %d over %d values", rows, cols, len(v)))
	}
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: v}
}
