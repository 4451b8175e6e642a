package ops

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// SoftmaxCrossEntropy returns the sum of the cross entropies of the softmax of each row of logits, and sets errors,
// which may be logits, to its gradient over them, times scale: scale*(softmax - one-hot). Each row has one value for
// each class and one label, the number of its class. Tiny errors become 0: those of a model that is nearly certain
// would be subnormal numbers, which processors compute about a hundred times slower. A label that is not a whole
// number from 0 to below the number of classes is an error of the program: it panics.
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

// LogSumExp is log Σ exp(row) without overflow, since the largest value is subtracted first. The cross entropy of a
// row is LogSumExp(row) - row[label].
func LogSumExp(row tensor.Vector) float64 {
	largest := float64(row[Argmax(row)])
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - largest)
	}
	return largest + math.Log(sum)
}

// Argmax is the index of the largest number, the first of several.
func Argmax(row tensor.Vector) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}
