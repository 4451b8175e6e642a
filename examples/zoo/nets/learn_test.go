package nets

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

// needsKernels skips a training that the plain loops would take a minute for: they
// are held to the same numbers by TestFixedProblem.
func needsKernels(t *testing.T) {
	t.Helper()
	if tensor.Instructions() == "go" {
		t.Skip("no vector instructions in this build")
	}
}

func glyphs(t testing.TB, train, heldOut int) (*dataset.Set, *dataset.Set) {
	t.Helper()
	a, err := dataset.Glyphs(1, seeded.Identity(train))
	if err != nil {
		t.Fatal(err)
	}
	b, err := dataset.HeldOutGlyphs(heldOut)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// Glyphs are not trivial: what a linear model learns in a short training stays
// far below what a hidden layer makes of the same pictures.
func TestHiddenLayerBeatsLinear(t *testing.T) {
	train, heldOut := glyphs(t, 8000, 2000)
	r := recipe{batch: 32, rate: 0.02, momentum: 0.9, passes: 4}
	linear := accuracy(t, modelFor(t, "softmax", train), train, heldOut, r)
	hidden := accuracy(t, modelFor(t, "mlp", train), train, heldOut, r)
	t.Logf("held-out accuracy: softmax %.4f, mlp %.4f", linear, hidden)
	if linear > 0.85 || hidden < linear+0.08 {
		t.Errorf("softmax %.4f, mlp %.4f: want a gap of 0.08 and softmax at most 0.85", linear, hidden)
	}
}

// Convolutions need fewer pictures for the same digits, with a tenth of the
// parameters.
func TestConvolutionsBeatHiddenLayer(t *testing.T) {
	needsKernels(t)
	train, heldOut := glyphs(t, 3000, 2000)
	r := recipe{batch: 32, rate: 0.02, momentum: 0.9, passes: 4}
	hidden := accuracy(t, modelFor(t, "mlp", train), train, heldOut, r)
	r.rate = 0.01
	conv := accuracy(t, modelFor(t, "cnn", train), train, heldOut, r)
	t.Logf("held-out accuracy: mlp %.4f, cnn %.4f", hidden, conv)
	if conv < 0.93 || conv < hidden+0.02 {
		t.Errorf("mlp %.4f, cnn %.4f: want a gap of 0.02 and cnn at least 0.93", hidden, conv)
	}
}

// Directions of stripes and a slight cast of colour are learnt in a minute's worth
// of photographs' steps; a linear model sees neither direction.
func TestMobileNetLearnsStripes(t *testing.T) {
	needsKernels(t)
	train, heldOut := stripes(t, 1, 1500, 16), stripes(t, 2, 500, 16)
	r := recipe{batch: 32, rate: 0.05, momentum: 0.9, passes: 4}
	linear := accuracy(t, modelFor(t, "softmax", train), train, heldOut, recipe{batch: 32, rate: 0.002, momentum: 0.9, passes: 4})
	deep := accuracy(t, modelFor(t, "mobilenet-small", train), train, heldOut, r)
	t.Logf("held-out accuracy: softmax %.4f, mobilenet-small %.4f", linear, deep)
	if linear > 0.6 || deep < 0.95 {
		t.Errorf("softmax %.4f, mobilenet-small %.4f: want at most 0.6 and at least 0.95", linear, deep)
	}
}
