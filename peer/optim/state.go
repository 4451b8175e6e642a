package optim

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// ErrNotFinite: a gradient, a step or an optimizer's state holds NaN or infinite values,
// or a step is so long that no other peer would take the model after it. Such a step has
// not been applied, and training may go on.
var ErrNotFinite = errors.New("NaN or infinite values")

// State is what an optimizer remembers from step to step.
type State struct {
	// Kind names the optimizer, Steps counts its steps where it does.
	Kind  string
	Steps uint64
	// Vectors are by name, each with as many values as the layout; none before the
	// first step.
	Vectors map[string]tensor.Vector
}

// Stateful is an Optimizer whose state a checkpoint can keep, as those of this package are.
type Stateful interface {
	Optimizer
	// State lends the state: the vectors are the optimizer's own. A peer reads them
	// while no other method of the optimizer runs.
	State() State
	// Restore takes over a state, vectors included, before the first step. It refuses
	// what is of another optimizer or was never such a state.
	Restore(State) error
}

// memory is what an optimizer of this package remembers; which vectors it has is its own matter.
type memory struct {
	vectors []tensor.Vector
	steps   uint64
}

// begin has so many vectors of this size, new ones if there are no such yet.
func (m *memory) begin(vectors, size int) {
	if len(m.vectors) == vectors && len(m.vectors[0]) == size {
		return
	}
	m.vectors, m.steps = make([]tensor.Vector, vectors), 0
	for i := range m.vectors {
		m.vectors[i] = make(tensor.Vector, size)
	}
}

// Reset implements Resetter.
func (m *memory) Reset() {
	for _, v := range m.vectors {
		clear(v)
	}
	m.steps = 0
}

func (m *memory) state(kind string, names ...string) State {
	s := State{Kind: kind, Steps: m.steps, Vectors: make(map[string]tensor.Vector, len(m.vectors))}
	for i, v := range m.vectors {
		s.Vectors[names[i]] = v
	}
	return s
}

func (m *memory) restore(s State, kind string, names ...string) error {
	if err := s.check(kind, names...); err != nil {
		return err
	}
	m.vectors, m.steps = nil, s.Steps
	for _, name := range names[:len(s.Vectors)] {
		m.vectors = append(m.vectors, s.Vectors[name])
	}
	return nil
}

// check tells what keeps a state from being one of a kind with these vectors: all of
// them, or none.
func (s State) check(kind string, names ...string) error {
	if s.Kind != kind {
		return fmt.Errorf("restoring the state of %s: it is of %.64q: give the same optimizer, or begin with another folder", kind, s.Kind)
	}
	if len(s.Vectors) == 0 {
		return nil
	}
	if len(s.Vectors) != len(names) {
		return fmt.Errorf("restoring the state of %s: %d vectors, want %d", kind, len(s.Vectors), len(names))
	}
	for _, name := range names {
		switch v, ok := s.Vectors[name]; {
		case !ok:
			return fmt.Errorf("restoring the state of %s: no %s: it has %.64q", kind, name, slices.Sorted(maps.Keys(s.Vectors)))
		case len(v) != len(s.Vectors[names[0]]):
			return fmt.Errorf("restoring the state of %s: %d values of %s, want %d", kind, len(v), name, len(s.Vectors[names[0]]))
		case !tensor.Finite(v):
			return fmt.Errorf("restoring the state of %s: %s: %w", kind, name, ErrNotFinite)
		case name == vectorSquare && slices.ContainsFunc(v, func(v float32) bool { return v < 0 }):
			return fmt.Errorf("restoring the state of %s: %s holds negative values", kind, name)
		}
	}
	return nil
}
