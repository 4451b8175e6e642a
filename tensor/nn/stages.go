package nn

// Stage tells that Trainer.Gradient has the final values of a gradient from one on when it has done a share of its work.
type Stage struct {
	From int
	Done float64
}

// Stages are about when Ready is told in a pass of a whole batch, for worlds in virtual time: by the number of products, of
// which a layer takes as many for the gradient over its parameters, and over its inputs, as forward.
func (m *Model) Stages() (stages []Stage) {
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
			stages = append(stages, Stage{From: from, Done: min((forward+before)/all, 1)})
		}
	}
	return stages
}
