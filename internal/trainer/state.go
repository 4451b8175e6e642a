package trainer

import (
	"maps"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// makeRoom gives s vectors with the names and lengths of those in like; it does not read
// their values.
func makeRoom(s *optim.State, like optim.State) {
	if s.Vectors == nil {
		s.Vectors = make(map[string]tensor.Vector, len(like.Vectors))
	}
	maps.DeleteFunc(s.Vectors, func(name string, _ tensor.Vector) bool { return like.Vectors[name] == nil })
	for name, from := range like.Vectors {
		if len(s.Vectors[name]) != len(from) {
			s.Vectors[name] = make(tensor.Vector, len(from))
		}
	}
}

// memories are what an optimizer remembers of the parts of a model that are updated one by one, each of values of its
// own. The optimizer has the memory of the part updated last, which lies in its vectors where that part does.
type memories struct {
	part, from, to int            // the last, and its values
	others         optim.State    // Steps are those behind a part that has not been updated here
	steps          map[int]uint64 // of the others; nil before the first
}

// turn gives the optimizer its memory of a part, of the values from one to another. An optimizer whose state cannot be
// had uses one memory for all parts.
func (m *memories) turn(o optim.Optimizer, part collective.Transfer, from, to int) error {
	stateful, can := o.(optim.Stateful)
	if !can || part.Parts < 2 {
		return nil
	}
	if m.steps == nil { // what a checkpoint had of them
		copyState(&m.others, stateful.State())
		m.part, m.from, m.to, m.steps = part.Part, from, to, make(map[int]uint64)
	}
	if m.part == part.Part {
		return nil
	}
	lent := stateful.State()
	makeRoom(&m.others, lent)
	m.steps[m.part] = lent.Steps
	for name, v := range lent.Vectors {
		others := m.others.Vectors[name]
		copy(others[m.from:m.to], v[m.from:m.to])
		clear(v)
		copy(v[from:to], others[from:to])
	}
	lent.Steps = m.others.Steps
	if steps, known := m.steps[part.Part]; known {
		lent.Steps = steps
	}
	m.part, m.from, m.to = part.Part, from, to
	return stateful.Restore(lent)
}

// join completes a copy of the optimizer's state by what it remembers of other parts.
func (m *memories) join(state *optim.State) {
	for name, v := range state.Vectors {
		if others := m.others.Vectors[name]; len(others) == len(v) {
			copy(v[:m.from], others[:m.from])
			copy(v[m.to:], others[m.to:])
		}
	}
}

// copyState copies a state into another, whose vectors it uses again.
func copyState(to *optim.State, from optim.State) {
	makeRoom(to, from)
	to.Kind, to.Steps = from.Kind, from.Steps
	for name, v := range from.Vectors {
		copy(to.Vectors[name], v)
	}
}
