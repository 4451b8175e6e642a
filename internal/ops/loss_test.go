package ops_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

func TestSoftmaxCrossEntropyEqualsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, n := rapid.IntRange(1, 12).Draw(t, "classes"), rapid.IntRange(1, 6).Draw(t, "rows")
		var r room
		random := drawSource(t)
		logits := r.normal(random, n*classes)
		labels := make(tensor.Vector, n)
		for i := range labels {
			labels[i] = float32(random.IntN(classes))
		}
		at := wide(logits)
		loss := func() float64 { return crossEntropy(at, labels, classes) }
		if got, want := ops.SoftmaxCrossEntropy(logits, logits, labels, 1/float64(n))/float64(n), loss(); math.Abs(got-want) > 1e-6*max(want, 1) {
			t.Fatalf("%v, want %v", got, want)
		}
		slopes(t, random, "gradient", logits, loss, at, 1e-6)
		r.check(t)
	})
}

// TestSoftmaxOfExtremes: nothing overflows, and what is next to nothing is 0 rather
// than a subnormal number.
func TestSoftmaxOfExtremes(t *testing.T) {
	logits := tensor.Vector{1e30, 0, -1e30, 60, 0, -30}
	if got := ops.SoftmaxCrossEntropy(logits, logits, tensor.Vector{0, 1}, 0.5) / 2; math.Abs(got-30) > 1e-6 {
		t.Errorf("loss %v, want 30", got)
	}
	if want := (tensor.Vector{0, 0, 0, 0.5, -0.5, 0}); !slices.Equal(logits, want) {
		t.Errorf("gradient %v, want %v", logits, want)
	}
	if got := ops.SoftmaxCrossEntropy(nil, nil, nil, 1); got != 0 {
		t.Errorf("the loss of nothing is %v", got)
	}
	if got := ops.Argmax(tensor.Vector{1, 3, 3, 2}); got != 1 {
		t.Errorf("Argmax is %d, want the first of equals", got)
	}
}
