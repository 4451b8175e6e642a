package kernel

import "math"

// The functions below work on a matrix of rows of n values that follow one another
// without gaps. Sums are in float64, in an order that follows from n alone, so that
// every CPU gives the same bits.

// SoftmaxRows equals, for each row,
//
//	for i := range row { row[i] = exp(factor*row[i] - most) / sum }
//
// where most is the largest of factor*row[i] and sum that of the exponentials, of
// which those below 1e-12 are 0. A row with a NaN or whose largest value is not
// finite becomes NaN.
func SoftmaxRows(x []float32, n int, factor float32) {
	for from, to := range pieces(len(x), n) {
		softmaxRows(x[from:to], nil, n, n, 0, factor, 1, (to-from)/n)
	}
}

// SoftmaxCausal is SoftmaxRows of the first before+1 values of the first row, one more
// of each row after it, and so on up to n; the values after them become 0, whatever
// they were. In a square matrix of attention, before is 0.
func SoftmaxCausal(x []float32, n, before int, factor float32) {
	for from, to := range pieces(len(x), n) {
		softmaxRows(x[from:to], nil, n, min(before+from/n+1, n), 1, factor, 1, (to-from)/n)
	}
}

// SoftmaxRowsGradient replaces the gradient over what SoftmaxRows gave, p, by the one
// over what it took. It equals, for each row,
//
//	for i := range row { row[i] = p[i] * (row[i] - dot) * factor }
//
// where dot is the sum of p[i] * row[i].
func SoftmaxRowsGradient(grad, p []float32, n int, factor float32) {
	p = p[:len(grad)]
	for from, to := range pieces(len(grad), n) {
		softmaxRowsGradient(grad[from:to], p[from:to], n, n, 0, factor, (to-from)/n)
	}
}

// SoftmaxCausalGradient is SoftmaxRowsGradient of what SoftmaxCausal gave: of the
// values after those that it works on, grad becomes 0 and p is not read.
func SoftmaxCausalGradient(grad, p []float32, n, before int, factor float32) {
	p = p[:len(grad)]
	for from, to := range pieces(len(grad), n) {
		softmaxRowsGradient(grad[from:to], p[from:to], n, min(before+from/n+1, n), 1, factor, (to-from)/n)
	}
}

// CrossEntropy returns the cross entropy of a row of logits, log(sum of exp(row)) -
// row[label], and replaces the row by its gradient, (softmax(row) - one-hot)·scale.
// Of the softmax, what is below 1e-12 of its largest value is 0: it would make
// numbers that are not normal, on which processors are some hundred times slower.
func CrossEntropy(row []float32, label int, scale float32) float64 {
	var stats [2]float64
	logit := float64(row[label])
	softmaxRows(row, stats[:], len(row), len(row), 0, 1, scale, 1)
	row[label] -= scale
	return stats[0] + math.Log(stats[1]) - logit
}
