package ops_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// convolution is what both kinds of convolution can do, for tests.
type convolution interface {
	Out() ops.Shape
	WeightLen() int
	AddWeightGradient(grad, in, errors tensor.Vector)
}

// loaded gives Depthwise the methods of Convolution.
type loaded struct {
	*ops.Depthwise
	weights tensor.Vector
}

func (l *loaded) Load(weights tensor.Vector)    { l.weights = weights }
func (l *loaded) Forward(out, in tensor.Vector) { l.Depthwise.Forward(out, in, l.weights) }
func (l *loaded) InputGradient(below, errors tensor.Vector) {
	l.Depthwise.InputGradient(below, errors, l.weights)
}

type loadable interface {
	convolution
	Load(weights tensor.Vector)
	Forward(out, in tensor.Vector)
	InputGradient(below, errors tensor.Vector)
}

func TestConvolutionEqualsTheOracle(t *testing.T) { rapid.Check(t, checkConvolution) }

func checkConvolution(t *rapid.T) {
	in, stride := drawShape(t, 6), rapid.IntRange(1, 2).Draw(t, "stride")
	depthwise := rapid.Bool().Draw(t, "depthwise")
	var layer loadable
	if depthwise {
		layer = &loaded{Depthwise: ops.NewDepthwise(in, stride)}
	} else {
		layer = ops.NewConvolution(in, rapid.IntRange(1, 37).Draw(t, "out"), stride)
	}
	n := rapid.IntRange(1, 3).Draw(t, "pictures")
	var r room
	random, out := drawSource(t), layer.Out()
	x, w := r.normal(random, n*in.Len()), r.normal(random, layer.WeightLen())
	e, y := r.normal(random, n*out.Len()), r.vector(n*out.Len())
	below, grad := r.vector(len(x)), r.vector(len(w))
	clear(grad)

	layer.Load(r.normal(random, len(w))) // which the next ones replace
	layer.InputGradient(below, e)
	layer.Load(w)
	layer.Forward(y, x)
	layer.InputGradient(below, e)
	layer.AddWeightGradient(grad, x, e)

	forward := func(x, w []float64) []float64 { return convolve(x, w, in, out, stride, depthwise) }
	x64, w64 := wide(x), wide(w)
	near(t, "output", y, forward(x64, w64), forward(magnitudes(x64), magnitudes(w64)), tolerance)
	loss := func() float64 { return dot(forward(x64, w64), e) }
	slopes(t, random, "gradient over the input", below, loss, x64, 1e-4)
	slopes(t, random, "gradient over the weights", grad, loss, w64, 1e-4)
	r.check(t)

	// Twice as much the second time, to the bit, and nothing else has changed.
	again, twice := r.vector(len(y)), slices.Clone(grad)
	layer.AddWeightGradient(twice, x, e)
	tensor.Sub(twice, grad)
	layer.Load(w)
	layer.Forward(again, x)
	sameBits(t, "the second output", again, y)
	near(t, "the second gradient", twice, wide(grad), magnitudes(wide(grad)), tolerance)
	layer.InputGradient(x, e)
	sameBits(t, "the second gradient over the input", x, below)
}

// Pictures do not depend on how many there are in a call.
func TestConvolutionTakesPicturesOneByOne(t *testing.T) {
	in := ops.Shape{Height: 5, Width: 7, Channels: 3}
	layer := ops.NewConvolution(in, 20, 1)
	var r room
	random := seeded(1)
	x, w := r.normal(random, 3*in.Len()), r.normal(random, layer.WeightLen())
	layer.Load(w)
	all, single := r.vector(3*layer.Out().Len()), r.vector(3*layer.Out().Len())
	layer.Forward(all, x)
	for i := range 3 {
		layer.Forward(single[i*layer.Out().Len():(i+1)*layer.Out().Len()], x[i*in.Len():(i+1)*in.Len()])
	}
	sameBits(t, "pictures one by one", single, all)
}
