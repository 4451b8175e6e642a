package ops

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// negligible is the error, as a share of the largest possible, that counts as
// none. The errors of a model that is sure of itself, exp(-90) and the like,
// would fill gradient and momentum with subnormal numbers, on which processors
// are some hundred times slower: a long training would drop to a quarter of its
// speed.
const negligible = 1e-12

// SoftmaxCrossEntropy returns the sum of the cross entropies of the softmax of each row of
// logits, and sets errors, which may be logits, to its gradient over them, times scale:
// scale*(softmax - one-hot). Each row has one label, the number of its class, and one
// value a class. A label that is no whole number from 0 below the number of classes is an
// error of the program and panics.
func SoftmaxCrossEntropy(errors, logits, labels tensor.Vector, scale float64) float64 {
	wantLen("SoftmaxCrossEntropy", len(errors), len(logits))
	if len(labels) == 0 {
		return 0
	}
	classes := len(logits) / len(labels)
	wantLen("SoftmaxCrossEntropy", len(logits), len(labels)*classes)
	sum := 0.0
	for i, l := range labels {
		label := int(l)
		if label < 0 || label >= classes || float32(label) != l {
			panic(fmt.Sprintf("nn: label %v of row %d: want the number of one of %d classes, from 0", l, i, classes))
		}
		row, e := logits[i*classes:][:classes], errors[i*classes:][:classes]
		total := LogSumExp(row)
		sum += total - float64(row[label])
		for j, v := range row {
			p := math.Exp(float64(v) - total)
			if j == label {
				p--
			}
			if math.Abs(p) < negligible {
				p = 0
			}
			e[j] = float32(p * scale)
		}
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
