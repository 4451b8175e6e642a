package ops

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// SoftmaxCrossEntropy returns the sum of the cross entropies of the softmax of each row of
// logits, and sets errors, which may be logits, to its gradient over them, times scale:
// scale*(softmax - one-hot). Each row has one label, the number of its class, and one
// value a class; next to nothing counts as none, since the errors of a model that is sure
// of itself would be subnormal numbers, on which processors are some hundred times slower.
// A label that is no whole number from 0 below the number of classes is an
// error of the program and panics.
func SoftmaxCrossEntropy(errors, logits, labels tensor.Vector, scale float64) float64 {
	wantLen("SoftmaxCrossEntropy", len(errors), len(logits))
	if len(labels) == 0 {
		return 0
	}
	classes := len(logits) / len(labels)
	wantLen("SoftmaxCrossEntropy", len(logits), len(labels)*classes)
	copy(errors, logits)
	sum := 0.0
	for i, l := range labels {
		label := int(l)
		if label < 0 || label >= classes || float32(label) != l {
			panic(fmt.Sprintf("nn: label %v of row %d: want the number of one of %d classes, from 0", l, i, classes))
		}
		e := errors[i*classes:][:classes]
		sum += kernel.CrossEntropy(e, label, float32(scale))
	}
	return sum
}

// LogSumExp is log Σ exp(row), with the largest taken out so that nothing
// overflows. The cross entropy of one row is LogSumExp(row) - row[label].
func LogSumExp(row tensor.Vector) float64 {
	largest := float64(row[Argmax(row)])
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - largest)
	}
	return largest + math.Log(sum)
}

// Argmax is the place of the largest number, the first of equals.
func Argmax(row tensor.Vector) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}
