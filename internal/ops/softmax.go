package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// SoftmaxCausal replaces row i of scores, which has n values: the first from+i+1 values by the softmax of scale times
// these, the others by 0.
func SoftmaxCausal(scores tensor.Vector, n, from int, scale float32) {
	pictures("SoftmaxCausal", len(scores), n)
	kernel.SoftmaxCausal(scores, n, from, scale)
}

// SoftmaxCausalGradient replaces the gradient over the probabilities, which SoftmaxCausal returned, by the gradient
// over the scores.
func SoftmaxCausalGradient(errors, probabilities tensor.Vector, n, from int, scale float32) {
	pictures("SoftmaxCausalGradient", len(errors), n)
	wantLen("SoftmaxCausalGradient", len(probabilities), len(errors))
	kernel.SoftmaxCausalGradient(errors, probabilities, n, from, scale)
}
