package nets

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Evaluate implements Model. It takes as many pictures at a time as a pass of the
// gradient does.
func (m *network) Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64) {
	m.check(params)
	if set.Len() == 0 {
		return 0, 0
	}
	correct, sum := 0, 0.0
	for from := 0; from < set.Len(); from += m.pass {
		set.Fill(&m.batch, from, min(from+m.pass, set.Len()))
		m.checkBatch(&m.batch)
		logits := m.forward(params, m.batch.X, pass{pictures: m.batch.Len(), first: from == 0})
		for i, label := range m.batch.Labels {
			row := logits[i*m.classes : (i+1)*m.classes]
			if nn.Argmax(row) == int(label) {
				correct++
			}
			sum += nn.LogSumExp(row) - float64(row[label])
		}
	}
	n := float64(set.Len())
	return float64(correct) / n, sum / n
}
