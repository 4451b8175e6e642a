package peer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// OptimizerState is what an optimizer remembers from step to step.
type OptimizerState struct {
	// Kind names the optimizer, Steps counts its steps where it does.
	Kind  string
	Steps uint64
	// Vectors are by name, each with as many values as the layout; none before the
	// first step.
	Vectors map[string]tensor.Vector
}

// StatefulOptimizer is an Optimizer whose state a checkpoint can keep. Those of this
// package are.
type StatefulOptimizer interface {
	Optimizer
	// State lends the state: the vectors are the optimizer's own. A peer reads them
	// while no other method of the optimizer runs.
	State() OptimizerState
	// Restore takes over a state, vectors included, before the first step. It refuses
	// what is of another optimizer or was never such a state.
	Restore(OptimizerState) error
}

// Kinds and vectors of the optimizers here.
const (
	kindSGD, vectorVelocity             = "sgd", "velocity"
	kindAdamW, vectorMean, vectorSquare = "adamw", "mean", "square"
)

// State implements StatefulOptimizer.
func (o *SGD) State() OptimizerState {
	return OptimizerState{Kind: kindSGD, Vectors: vectors(o.velocity, vectorVelocity)}
}

// Restore implements StatefulOptimizer.
func (o *SGD) Restore(s OptimizerState) error {
	if err := s.check(kindSGD, vectorVelocity); err != nil {
		return err
	}
	o.velocity = s.Vectors[vectorVelocity]
	return nil
}

// State implements StatefulOptimizer.
func (o *AdamW) State() OptimizerState {
	s := OptimizerState{Kind: kindAdamW, Steps: o.steps, Vectors: vectors(o.first, vectorMean)}
	maps.Copy(s.Vectors, vectors(o.second, vectorSquare))
	return s
}

// Restore implements StatefulOptimizer.
func (o *AdamW) Restore(s OptimizerState) error {
	if err := s.check(kindAdamW, vectorMean, vectorSquare); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Vectors[vectorSquare], func(v float32) bool { return v < 0 }) {
		return fmt.Errorf("restoring the state of %s: %s holds negative values", kindAdamW, vectorSquare)
	}
	o.first, o.second, o.steps = s.Vectors[vectorMean], s.Vectors[vectorSquare], s.Steps
	return nil
}

// vectors is a vector by its name, nothing if it is empty.
func vectors(v tensor.Vector, name string) map[string]tensor.Vector {
	if len(v) == 0 {
		return map[string]tensor.Vector{}
	}
	return map[string]tensor.Vector{name: v}
}

// check tells what keeps a state from being one of a kind with these vectors: all of
// them, or none.
func (s OptimizerState) check(kind string, names ...string) error {
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
		}
	}
	return nil
}

// optimize turns the gradient into a step at x, of that replacement of the model, and adds
// it, unless it is one that nobody would take the model after. A copy of the optimizer's state and of the parameters is of
// before both or after both.
func (p *Peer) optimize(grad, x tensor.Vector, rate float64, share float32, model int) (waited time.Duration, err error) {
	p.optimizing.Lock()
	defer p.optimizing.Unlock()
	p.config.Optimizer.Delta(grad, x, rate)
	if share > 0 {
		tensor.Scale(grad, share)
	}
	waited, err = p.add(grad, model)
	if errors.Is(err, ErrNotFinite) {
		p.forget() // its state holds what made the step so
	}
	return waited, err
}

// forget has the optimizer forget past gradients, if it can. The caller holds optimizing.
func (p *Peer) forget() {
	if resettable, ok := p.config.Optimizer.(resetter); ok {
		resettable.Reset()
	}
}

// resetter is an Optimizer that can forget what it remembers.
type resetter interface{ Reset() }

// saveOptimizer copies the optimizer's state, if it can be kept. The caller holds
// optimizing, and has made room: what room there is not is made meanwhile.
func (p *Peer) saveOptimizer(into *OptimizerState) {
	stateful, ok := p.config.Optimizer.(StatefulOptimizer)
	if !ok {
		*into = OptimizerState{}
		return
	}
	lent := stateful.State()
	into.makeRoom(lent)
	into.Kind, into.Steps = lent.Kind, lent.Steps
	for name, from := range lent.Vectors {
		copy(into.Vectors[name], from)
	}
}

// makeRoom gives a state vectors of the names and lengths that another has, of which
// nothing but that is read.
func (s *OptimizerState) makeRoom(like OptimizerState) {
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
