package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// SoftmaxCausal replaces row i of scores, n values each, scaled, by the softmax of its
// first from+i+1 values, and what follows them by 0.
func SoftmaxCausal(scores tensor.Vector, n, from int, scale float32) {
	pictures("SoftmaxCausal", len(scores), n)
	kernel.SoftmaxCausal(scores, n, from, scale)
}

// SoftmaxCausalGradient replaces the errors of the probabilities that SoftmaxCausal gave
// by those of the scores.
func SoftmaxCausalGradient(errors, probabilities tensor.Vector, n, from int, scale float32) {
	pictures("SoftmaxCausalGradient", len(errors), n)
	wantLen("SoftmaxCausalGradient", len(probabilities), len(errors))
	kernel.SoftmaxCausalGradient(errors, probabilities, n, from, scale)
}
