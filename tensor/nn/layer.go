package nn

import "github.com/seed-97356399/murmuration/tensor"

// Layer describes one step of a model. It holds no values, may stand in several models, and is safe for concurrent
// use. A service may have layers of its own.
type Layer interface {
	// For builds the layer for examples of shape in, which it does not change. Its error says which shape the layer
	// needs.
	For(in Shape) (Built, error)
}

// Built is a layer for examples of a given shape.
type Built struct {
	// Out is the shape of the output for an example.
	Out Shape
	// Params are what the layer learns, in the order in which they lie in w and g of its Step; empty if it learns
	// nothing.
	Params []Param
	// Make makes the Step, with memory for passes of r.Examples examples.
	Make func(r *Room) Step
	// WholeBatch tells that all examples of a batch must be in one pass, since the output for one depends on the
	// others.
	WholeBatch bool
	// Work is about how many products a forward pass of an example takes; 0 stands for one for each value learned and row of
	// the output.
	Work float64

	name  string  // of a part of a Sequence: its place and its layer
	parts []Built // of a Sequence: what a model of it can be cut between
}

// work is Work, or what 0 stands for.
func (f Built) work() float64 {
	if f.Work > 0 {
		return f.Work
	}
	return float64(f.values() * f.Out.Rows())
}

// values is the number of values of all Params.
func (f Built) values() int {
	n := 0
	for _, p := range f.Params {
		n += Shape(p.Shape).Len()
	}
	return n
}

// Step computes a built layer on the examples of a pass, one after the other. One goroutine at a time may use it, and
// it allocates nothing. It holds no parameters: w and g are its ranges of the parameters and of their gradient.
//
// The Step owns the vectors that it returns, and they stay valid until its next call, like its inputs: Backward may
// read x and the outputs of the last Forward again. Another Step must not write to them.
type Step interface {
	// Forward computes the outputs of x.
	Forward(p Pass, w, x tensor.Vector) tensor.Vector
	// Backward follows a Forward of the same pass. e is the gradient of the loss over the outputs, and Backward may
	// overwrite it. It adds the gradient over w to g, after p.Begin(g), and returns the gradient over x. The result
	// may be e, and is ignored unless p.Inputs.
	Backward(p Pass, w, g, e tensor.Vector) tensor.Vector
}

// Pass is a part of a batch that goes through all layers, forward and back, at a time.
type Pass struct {
	// Examples is the number of examples, From the index of the first one within its batch.
	Examples, From int
	// First tells that this is the first pass of a lane (a part of a batch): the gradient starts at 0. Last tells
	// that it is the last one: until then a Step may hold its gradient back.
	First, Last bool
	// Fresh tells that the parameters may have changed since the Step's last pass.
	Fresh bool
	// Train is true in training, false when a model predicts.
	Train bool
	// Inputs tells that the gradient over the inputs is needed.
	Inputs bool
	// Seed differs for each batch. Random numbers depend on it, on a layer's number and on the example's index, so
	// they do not depend on how a batch is divided.
	Seed uint64
}

// Begin sets the gradient to 0 in the first pass.
func (p Pass) Begin(g tensor.Vector) {
	if p.First {
		clear(g)
	}
}

// beta is the factor of the previous gradient: 0 in the first pass, else 1.
func (p Pass) beta() float32 {
	if p.First {
		return 0
	}
	return 1
}

// Room allocates the memory of the steps of a model for one goroutine.
type Room struct {
	examples int
	learns   bool // Backward will be called
	taken    int  // values allocated for each example
	layers   uint64
	mul      *tensor.Multiplier
	scratch  *scratch // nil outside a Checkpoint
	shared   *scratch // memory that the Checkpoints of a model share
	passing  *scratch // nil outside a Residual
	between  *scratch // memory that the Residuals of a model share
}

func newRoom(examples int, learns bool) *Room {
	return &Room{examples: examples, learns: learns, mul: &tensor.Multiplier{}, shared: &scratch{}, between: &scratch{}}
}

// beside is a Room for the same goroutine, with the same memory for what nothing needs between two calls.
func (r *Room) beside() *Room {
	return &Room{examples: r.examples, learns: r.learns, mul: r.mul, shared: r.shared, between: r.between}
}

// scratch is memory that several layers use in turn.
type scratch struct {
	pieces []tensor.Vector
	next   int
}

// take returns the next piece, with at least n values.
func (s *scratch) take(n int) tensor.Vector {
	if s.next == len(s.pieces) {
		s.pieces = append(s.pieces, nil)
	}
	at := &s.pieces[s.next]
	s.next++
	if len(*at) < n {
		*at = make(tensor.Vector, n)
	}
	return (*at)[:n:n]
}

// Examples is how many examples a pass has at most.
func (r *Room) Examples() int { return r.examples }

// Values allocates n values for each example of a pass.
func (r *Room) Values(n int) tensor.Vector {
	if r.scratch != nil {
		return r.scratch.take(n * r.examples)
	}
	r.taken += n
	return make(tensor.Vector, n*r.examples)
}

// Gradients is Values for memory that only Backward needs: nil if the model only predicts.
func (r *Room) Gradients(n int) tensor.Vector {
	if !r.learns {
		return nil
	}
	return r.Values(n)
}

// within makes the steps of a Residual. All Residuals share the memory of errors: a Residual returns the errors that
// it was given, so those of its steps are not needed any more.
func (r *Room) within(makeSteps func()) {
	outer := r.passing
	if outer == nil {
		r.passing, r.between.next = r.between, 0
	}
	makeSteps()
	r.passing = outer
}

// errors is Gradients for memory that nothing uses between two calls of Backward.
func (r *Room) errors(n int) tensor.Vector {
	if r.passing == nil || r.scratch != nil || !r.learns {
		return r.Gradients(n)
	}
	return r.passing.take(n * r.examples)
}

// Learns tells whether Backward will be called.
func (r *Room) Learns() bool { return r.learns }

// Multiplier is the goroutine's Multiplier.
func (r *Room) Multiplier() *tensor.Multiplier { return r.mul }

// Number returns a different number for each call, the same numbers in each Room of a model.
func (r *Room) Number() uint64 {
	r.layers++
	return r.layers
}
