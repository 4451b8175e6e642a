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

// memories are what an optimizer remembers of the parts of a model that are updated one by one. It has the memory of
// the last one itself.
type memories struct {
	part   int // the last
	of     int // parts; 0 before the first
	others map[int]optim.State
}

// turn gives the optimizer its memory of a part, an empty one where it has none. An optimizer whose state cannot be
// had uses one memory for all parts.
func (m *memories) turn(o optim.Optimizer, to collective.Transfer) error {
	before := *m
	m.part, m.of = to.Part, to.Parts
	stateful, can := o.(optim.Stateful)
	if !can || before.of < 2 || before.part == to.Part {
		return nil
	}
	var left optim.State
	lent := stateful.State()
	makeRoom(&left, lent)
	left.Kind, left.Steps = lent.Kind, lent.Steps
	for name, from := range lent.Vectors {
		copy(left.Vectors[name], from)
	}
	if m.others == nil {
		m.others = make(map[int]optim.State)
	}
	m.others[before.part] = left
	next, known := m.others[to.Part]
	if delete(m.others, to.Part); !known {
		next = optim.State{Kind: lent.Kind}
	}
	return stateful.Restore(next)
}
