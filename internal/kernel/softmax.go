package kernel

import "math"

// SoftmaxCausal works on rows of n values that follow one another without gaps, of which
// the first before+1 values count in the first row, one more in each row after it, and so
// on up to n. It equals, for the values of a row that count,
//
//	for i := range row { row[i] = exp(factor*row[i] - most) / sum }
//
// where most is the largest of factor*row[i] and sum that of the exponentials, of which
// those below 1e-12 are 0; and the rest of a row's n values become 0, whatever they were.
// A square matrix of attention has before 0; with before n-1, all values of all rows
// count. A row with a NaN, or whose largest value is not finite, becomes NaN.
//
// Sums are in float64, in an order that follows from the number of values alone, so that
// every CPU gives the same bits.
func SoftmaxCausal(x []float32, n, before int, factor float32) {
	for from, to := range pieces(len(x), n) {
		softmaxRows(x[from:to], nil, (to-from)/n, n, min(before+from/n+1, n), factor, 1)
	}
}

// SoftmaxCausalGradient replaces the gradient over what SoftmaxCausal gave, p, by the one
// over what it took. It equals, for the values of a row that count,
//
//	for i := range row { row[i] = (row[i] - dot) * p[i] * factor }
//
// where dot is the sum of p[i] * row[i]; the others become 0 and are not read.
func SoftmaxCausalGradient(grad, p []float32, n, before int, factor float32) {
	p = p[:len(grad)]
	for from, to := range pieces(len(grad), n) {
		softmaxRowsGradient(grad[from:to], p[from:to], (to-from)/n, n, min(before+from/n+1, n), factor)
	}
}

// CrossEntropy returns the cross entropy of a row of logits, log(sum of exp(row)) -
// row[label], and replaces the row by its gradient, (softmax(row) - one-hot)·scale.
// Of the softmax, what is below 1e-12 of its largest value is 0: it would make
// numbers that are not normal, on which processors are some hundred times slower.
func CrossEntropy(row []float32, label int, scale float32) float64 {
	var stats [2]float64
	logit := float64(row[label])
	softmaxRows(row, stats[:], 1, len(row), len(row), 1, scale)
	row[label] -= scale
	return stats[0] + math.Log(stats[1]) - logit
}
