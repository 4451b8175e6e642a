package nets

import "github.com/seed-97356399/murmuration/tensor"

// A layer is one step from the pictures of a batch to their logits. It keeps no
// parameters: w and g are the range of the parameters, and of the gradient, that
// belongs to it, in the order of params.
//
// Vectors that it returns are its own and last until it is called again, as the
// inputs of forward must: backward reads them once more.
type layer interface {
	// params lists what the layer learns; nothing if it only transforms.
	params() []param
	// forward computes the outputs of the pictures x.
	forward(w, x tensor.Vector, p pass) tensor.Vector
	// backward takes the gradient of the loss over the outputs of the last forward,
	// which it may overwrite. It sets g, or adds to it, and returns the gradient
	// over the inputs.
	backward(w, g, e tensor.Vector, p pass) tensor.Vector
}

// pass is what all layers know about the part of a batch that goes through them.
type pass struct {
	pictures int
	// first is set for the first part of a batch: the parameters may have changed,
	// and the gradient begins anew.
	first bool
}

// beta is the share of the gradient that stays.
func (p pass) beta() float32 {
	if p.first {
		return 0
	}
	return 1
}

// begin clears the gradient of a batch before its first part adds to it.
func (p pass) begin(g tensor.Vector) {
	if p.first {
		clear(g)
	}
}

// room is a vector for n values, in the memory of v if that suffices.
func room(v tensor.Vector, n int) tensor.Vector {
	if cap(v) < n {
		return make(tensor.Vector, n)
	}
	return v[:n]
}
