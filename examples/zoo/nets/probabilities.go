package nets

import (
	"math"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// Probabilities implements Model, as many examples at a time as a pass of the gradient has.
func (m *network) Probabilities(params tensor.Vector, set *dataset.Set) []float64 {
	m.check(params)
	all := make([]float64, 0, set.Len()*m.classes)
	for from := 0; from < set.Len(); from += m.pass {
		set.Fill(&m.batch, from, min(from+m.pass, set.Len()))
		m.checkBatch(&m.batch)
		logits := m.forward(params, m.batch.X, pass{pictures: m.batch.Len(), first: from == 0})
		for i := range m.batch.Len() {
			all = appendSoftmax(all, logits[i*m.classes:(i+1)*m.classes])
		}
	}
	return all
}

// appendSoftmax appends what logits come to, in float64: probabilities near 0 and 1 keep their order.
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
