package nn

// RoomOf is how many values a trainer of the model keeps for an example.
func RoomOf(m *Model) int {
	r := newRoom(1, true)
	m.layers.Make(r)
	for _, piece := range r.shared.pieces {
		r.taken += len(piece)
	}
	return r.taken
}
