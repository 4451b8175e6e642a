package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Part is what a model can be cut before and behind: a layer of its Sequence, with the activation that is computed
// with it, or one of a Sequence within.
type Part struct {
	// Name is the place of the layer, as in the names of its parameters, and the layer: "3.Linear(64, 10)".
	Name string
	// Out is the shape of its output for an example.
	Out Shape
	// Params is the number of its parameters, Values how many values of an example it keeps for going back.
	Params, Values int
	// Work is about how many products a forward pass of an example takes.
	Work float64
}

// Parts are the parts of the model, in order.
func (m *Model) Parts() []Part {
	parts := make([]Part, len(m.layers.parts))
	for i, p := range m.layers.parts {
		one := newRoom(1, true)
		p.Make(one)
		parts[i] = Part{Name: p.name, Out: append(Shape(nil), p.Out...), Params: p.values(), Values: one.taken, Work: p.work()}
	}
	return parts
}

// Stages cuts the model before the parts with these numbers, in rising order, into models that follow each other: the
// outputs of one are the inputs of the next, parameters have the names that they have in the whole, and their layouts,
// one after the other, are the whole's. So members of a pipeline (Huang et al., 2019; Narayanan et al., 2019) need the
// parameters and the memory of their own stage alone.
func (m *Model) Stages(cuts ...int) ([]*Model, error) {
	from, in, numbered := 0, m.in, m.numbered
	var stages []*Model
	for _, to := range append(append([]int(nil), cuts...), len(m.layers.parts)) {
		if to <= from || to > len(m.layers.parts) {
			return nil, fmt.Errorf("%w: cuts %v: want numbers that rise, from 1 to %d", ErrModel, cuts, len(m.layers.parts)-1)
		}
		parts := m.layers.parts[from:to]
		stage, err := newModel(in, joined(parts[len(parts)-1].Out, parts), numbered)
		if err != nil {
			return nil, err
		}
		one := newRoom(1, true)
		stage.layers.Make(one)
		stages = append(stages, stage)
		from, in, numbered = to, stage.out, numbered+one.layers
	}
	return stages, nil
}

// Flow is the memory of one micro-batch on its way through a stage, forward and back. One goroutine at a time may use
// it; several micro-batches that are on their way at once have a Flow each. It allocates nothing after it was made.
type Flow struct {
	model *Model
	*worker
	pass Pass
}

// Flow returns memory for micro-batches of up to examples examples, each of which goes through the layers in one pass.
func (m *Model) Flow(examples int) *Flow {
	return &Flow{model: m, worker: m.newWorker(newRoom(max(examples, 1), true))}
}

// Another returns memory for another micro-batch of as many examples. Flows that are made of each other share what nothing needs
// between two calls: one goroutine at a time may use all of them, and what Backward returned is overwritten by the next call of
// any.
func (f *Flow) Another() *Flow {
	return &Flow{model: f.model, worker: f.model.newWorker(f.room.beside())}
}

// Forward returns the outputs for x, from one example to as many as the Flow has memory for, at params. Another number
// is an error of the program, and it panics: who reads x from others checks it first. The Flow owns them, until its next call, and reads x again
// in Backward. Random numbers of layers such as Dropout follow from the seed, which is the same for all stages, and from
// an example's index in the micro-batch.
func (f *Flow) Forward(params, x tensor.Vector, seed uint64) tensor.Vector {
	f.pass = Pass{Examples: f.examples("Forward", params, x), First: true, Last: true, Fresh: true, Train: true, Seed: mix(seed)}
	return f.step.Forward(f.pass, params, x)
}

// examples is the number of examples of a call.
func (f *Flow) examples(op string, params, x tensor.Vector) int {
	f.model.check(op, "params", params)
	n := f.model.examples(op, x)
	if n < 1 || n > f.most {
		panic(fmt.Sprintf("nn: %s: want 1 to %d examples, got %d", op, f.most, n))
	}
	return n
}

// Predict is Forward for outputs alone, as Model.Predict gives them: without Dropout, and with the statistics that were
// learned. No Backward may follow it.
func (f *Flow) Predict(params, x tensor.Vector) tensor.Vector {
	f.pass = Pass{Examples: f.examples("Predict", params, x), Fresh: true}
	return f.step.Forward(f.pass, params, x)
}

// Backward overwrites grad with the gradient of the stage, at the same params as Forward, for the gradient over the
// outputs of the last Forward, which it may overwrite. It returns the gradient over its inputs, which the Flow owns until
// its next call; nil if inputs is false, as where they are rows.
func (f *Flow) Backward(params, grad, errors tensor.Vector, inputs bool) tensor.Vector {
	f.model.check("Backward", "grad", grad)
	mustLen("Backward", "errors", len(errors), f.pass.Examples*f.model.out.Len())
	f.pass.Inputs = inputs
	below := f.step.Backward(f.pass, params, grad, errors)
	if !inputs {
		return nil
	}
	return below
}
