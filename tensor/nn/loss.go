package nn

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// negligible is the error, as a share of the largest possible, that counts as
// none. The errors of a model that is sure of itself, exp(-90) and the like,
// would fill gradient and momentum with subnormal numbers, on which processors
// are some hundred times slower: a long training would drop to a quarter of its
// speed.
const negligible = 1e-12

// SoftmaxCrossEntropy returns the mean cross entropy of the softmax of each row of
// logits, which has one value a class, and replaces the logits by its gradient over
// them: (softmax - one-hot)/rows. There is one row for each label, and classes are
// counted from 0. It is 0 for no rows.
func SoftmaxCrossEntropy(logits tensor.Vector, labels []uint8, classes int) float64 {
	wantLen("SoftmaxCrossEntropy", len(logits), len(labels)*classes)
	if len(labels) == 0 {
		return 0
	}
	sum := 0.0
	scale := 1 / float64(len(labels))
	for i, label := range labels {
		row := logits[i*classes:][:classes]
		total := LogSumExp(row)
		sum += total - float64(row[label])
		for j, v := range row {
			p := math.Exp(float64(v) - total)
			if j == int(label) {
				p--
			}
			if math.Abs(p) < negligible {
				p = 0
			}
			row[j] = float32(p * scale)
		}
	}
	return sum * scale
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
