package nn

import "github.com/seed-97356399/murmuration/tensor"

// RoomOf is how many values a trainer of the model keeps for an example.
func RoomOf(m *Model) int {
	r := newRoom(1, true)
	m.layers.Make(r)
	for _, piece := range r.shared.pieces {
		r.taken += len(piece)
	}
	return r.taken
}

// TrainingOutputs are the outputs of a batch as training has them.
func TrainingOutputs(m *Model, params, x tensor.Vector) tensor.Vector {
	n := len(x) / m.in.Len()
	w := m.newWorker(n, true)
	return w.step.Forward(Pass{Examples: n, First: true, Last: true, Fresh: true, Train: true}, params, x)
}
