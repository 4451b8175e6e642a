package nets

import (
	"math"

	"gonum.org/v1/gonum/blas/blas32"
)

// negligible is the error, as a share of the largest possible, that counts as
// none. The errors of a model that is sure of itself, exp(-90) and the like,
// would fill gradient and momentum with subnormal numbers, on which processors
// are some hundred times slower: a long training would drop to a quarter of its
// speed.
const negligible = 1e-12

// softmaxErrors replaces each row of logits by the gradient of the mean cross
// entropy over it, (softmax - one-hot)/rows, and returns that mean.
func softmaxErrors(logits blas32.General, labels []uint8) float64 {
	sum := 0.0
	scale := 1 / float64(logits.Rows)
	for i, label := range labels {
		row := logits.Data[i*logits.Stride:][:logits.Cols]
		total := logSumExp(row)
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

// logSumExp is log Σ exp(row), with the largest taken out so that nothing
// overflows.
func logSumExp(row []float32) float64 {
	largest := float64(row[argmax(row)])
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - largest)
	}
	return largest + math.Log(sum)
}

// argmax is the place of the largest number, the first of equals.
func argmax(row []float32) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}

func addBias(row, bias []float32) {
	for j, b := range bias {
		row[j] += b
	}
}

func addBiasRectify(row, bias []float32) {
	for j, b := range bias {
		row[j] = max(row[j]+b, 0)
	}
}

// sumRows sets sum to the sum of the rows of a.
func sumRows(a blas32.General, sum []float32) {
	clear(sum)
	for i := range a.Rows {
		addBias(sum, a.Data[i*a.Stride:][:a.Cols])
	}
}
