package nn

// Ready tells that Trainer.Gradient has the final values of a gradient from one on when it has done a share of its work.
type Ready struct {
	From int
	Done float64
}

// Readiness is about when Trainer.Ready is called in a pass of a whole batch, for worlds in virtual time: by the number of products, of
// which a layer takes as many for the gradient over its parameters, and over its inputs, as forward.
func (m *Model) Readiness() (ready []Ready) {
	from, before := m.layout.Len(), 0.0
	forward, all := m.layers.Work, 3*m.layers.Work
	for _, part := range m.layers.parts {
		if part.values() > 0 {
			all -= part.work() // the lowest layer needs no gradient over its inputs
			break
		}
	}
	if all <= 0 {
		return nil
	}
	for i := len(m.layers.parts) - 1; i >= 0; i-- {
		part := m.layers.parts[i]
		before += 2 * part.work()
		if n := part.values(); n > 0 {
			from -= n
			ready = append(ready, Ready{From: from, Done: min((forward+before)/all, 1)})
		}
	}
	return ready
}
