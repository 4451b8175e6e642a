package ops

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// SoftmaxCausal replaces row i of a block of scores, scaled, by the softmax of its first
// from+i+1 values, and what follows them by 0. Rows are stride values apart, of which n
// belong to a row.
func SoftmaxCausal(scores tensor.Vector, rows, n, stride, from int, scale float32) {
	for i := range rows {
		row := scores[i*stride:][:n]
		seen := row[:min(from+i+1, n)]
		largest := float64(seen[Argmax(seen)])
		sum := 0.0
		for j, v := range seen {
			e := math.Exp((float64(v) - largest) * float64(scale))
			sum += e
			seen[j] = float32(e)
		}
		tensor.Scale(seen, float32(1/sum))
		clear(row[len(seen):])
	}
}

// SoftmaxCausalGradient replaces the errors of the probabilities that SoftmaxCausal gave
// by those of the scores.
func SoftmaxCausalGradient(errors, probabilities tensor.Vector, rows, n, stride, from int, scale float32) {
	for i := range rows {
		seen := min(from+i+1, n)
		e, p := errors[i*stride:][:n], probabilities[i*stride:][:seen]
		sum := float32(0)
		for j, v := range p {
			sum += v * e[j]
		}
		for j, v := range p {
			e[j] = v * (e[j] - sum) * scale
		}
		clear(e[seen:])
	}
}
