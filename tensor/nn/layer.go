package nn

import "github.com/seed-97356399/murmuration/tensor"

// Layer is one step of a model. It only describes: it holds no values, may stand in
// several models, and is safe for concurrent use. A service may have layers of its own.
type Layer interface {
	// For builds the layer for examples of shape in, which it keeps unchanged. The error
	// tells what shape it wants.
	For(in Shape) (Built, error)
}

// Built is a layer that knows the shape of its examples.
type Built struct {
	// Out is the shape of what it makes of an example.
	Out Shape
	// Params are what it learns, in the order in which they lie in w and g of its Step;
	// none if it only transforms.
	Params []Param
	// Make makes what computes the layer, with room for passes of r.Examples examples.
	Make func(r *Room) Step
	// WholeBatch is set where the examples of a batch must go through in one pass, since
	// what becomes of one depends on the others.
	WholeBatch bool
}

// values is how many values it learns.
func (f Built) values() int {
	n := 0
	for _, p := range f.Params {
		n += Shape(p.Shape).Len()
	}
	return n
}

// Step computes a built layer on the examples of a pass, one after the other. It is for
// one goroutine at a time and allocates nothing. It keeps no parameters: w and g are the
// ranges of the parameters, and of their gradient, that belong to it.
//
// Vectors that it returns are its own and last until it is called again, as its inputs
// do: Backward may read x of the last Forward, and its own outputs, once more. Another
// Step may not write to them.
type Step interface {
	// Forward computes the outputs of x.
	Forward(p Pass, w, x tensor.Vector) tensor.Vector
	// Backward follows a Forward of the same pass. From e, the gradient of the loss over
	// the outputs, which it may overwrite, it adds the gradient over w to g, after
	// p.Begin(g), and returns the gradient over x. That may be e, and is ignored unless
	// p.Inputs.
	Backward(p Pass, w, g, e tensor.Vector) tensor.Vector
}

// Pass is the part of a batch that goes through all layers, and back, at a time.
type Pass struct {
	// Examples is how many there are, From the number of the first within its batch.
	Examples, From int
	// First is set in the first pass of a part of a batch: the gradient begins anew. Last
	// is set in the last one: until then a Step may keep its gradient to itself.
	First, Last bool
	// Fresh is set where the parameters may have changed since the Step's last pass.
	Fresh bool
	// Train is set in training, and not where a model predicts.
	Train bool
	// Inputs is set where the gradient over the inputs is wanted.
	Inputs bool
	// Seed differs from batch to batch: chance depends on it, on a layer's number and on
	// the number of an example, so that it is the same however a batch is split.
	Seed uint64
}

// Begin clears the gradient of a batch before its first pass adds to it.
func (p Pass) Begin(g tensor.Vector) {
	if p.First {
		clear(g)
	}
}

// beta is the share of the gradient that stays.
func (p Pass) beta() float32 {
	if p.First {
		return 0
	}
	return 1
}

// Room is where the steps of a model take their memory from when they are made: that of
// one goroutine.
type Room struct {
	examples int
	learns   bool // Backward will be called
	taken    int  // values for an example
	layers   uint64
	mul      *tensor.Multiplier
	scratch  *scratch // nil outside a Checkpoint
	shared   *scratch // what the Checkpoints of a model share
	passing  *scratch // nil outside a Residual
	between  *scratch // what the Residuals of a model share
}

func newRoom(examples int, learns bool) *Room {
	return &Room{examples: examples, learns: learns, mul: &tensor.Multiplier{}, shared: &scratch{}, between: &scratch{}}
}

// scratch is memory that several layers use in turn.
type scratch struct {
	pieces []tensor.Vector
	next   int
}

// take is the next piece, with n values at least.
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

// Values is room for n values of each example of a pass.
func (r *Room) Values(n int) tensor.Vector {
	if r.scratch != nil {
		return r.scratch.take(n * r.examples)
	}
	r.taken += n
	return make(tensor.Vector, n*r.examples)
}

// Gradients is as Values, for what only Backward needs: nothing where the model predicts.
func (r *Room) Gradients(n int) tensor.Vector {
	if !r.learns {
		return nil
	}
	return r.Values(n)
}

// within makes the steps of a Residual, which share their errors with those of others: a
// Residual passes on the errors that it is given, and leaves none of its steps' in use.
func (r *Room) within(makeSteps func()) {
	outer := r.passing
	if outer == nil {
		r.passing, r.between.next = r.between, 0
	}
	makeSteps()
	r.passing = outer
}

// errors is as Gradients, for what nothing holds on to from one Backward to the next.
func (r *Room) errors(n int) tensor.Vector {
	if r.passing == nil || r.scratch != nil || !r.learns {
		return r.Gradients(n)
	}
	return r.passing.take(n * r.examples)
}

// Learns tells whether Backward will be called.
func (r *Room) Learns() bool { return r.learns }

// Multiplier is what the goroutine multiplies matrices with.
func (r *Room) Multiplier() *tensor.Multiplier { return r.mul }

// Number is another number for each caller, the same in every room of a model.
func (r *Room) Number() uint64 {
	r.layers++
	return r.layers
}
