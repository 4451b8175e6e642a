package nets

import (
	"math"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// Probabilities implements Model.
func (m *network) Probabilities(params tensor.Vector, set *dataset.Set) []float64 {
	all := make([]float64, 0, set.Len()*m.classes)
	m.each(params, set, func(logits tensor.Vector, _ uint8) { all = appendSoftmax(all, logits) })
	return all
}

// appendSoftmax appends the softmax of logits in float64, so that probabilities near 0 and 1 keep their order.
func appendSoftmax(dst []float64, logits tensor.Vector) []float64 {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range logits {
		largest = max(largest, float64(v))
	}
	from := len(dst)
	for _, v := range logits {
		e := math.Exp(float64(v) - largest)
		dst, sum = append(dst, e), sum+e
	}
	for i := range dst[from:] {
		dst[from+i] /= sum
	}
	return dst
}
