package nets

import (
	"math"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

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

// room has n values, in the memory of v if that suffices.
func room[S ~[]E, E any](v S, n int) S {
	if cap(v) < n {
		return make(S, n)
	}
	return v[:n]
}

// param is one range of parameters and where its training starts.
type param struct {
	tensor.Spec
	start start
}

// start is a rule for the values that training starts from: even in
// ±sqrt(variance/fan), or all of them the same where fan is zero.
type start struct {
	variance float64
	fan      int
	fill     float32
}

// Weights before a rectifier have twice the variance (He et al., 2015): it cuts one
// half off.
const (
	rectified = 6.0
	linear    = 3.0
)

func even(variance float64, fan int) start { return start{variance: variance, fan: fan} }

func constant(fill float32) start { return start{fill: fill} }

// set fills w. Nothing but integers, one square root and one product goes into a
// weight, so no platform rounds it differently.
func (s start) set(w tensor.Vector, rng *rand.Rand) {
	if s.fan == 0 {
		for i := range w {
			w[i] = s.fill
		}
		return
	}
	const half = 1 << 23
	unit := float32(math.Sqrt(s.variance/float64(s.fan))) / half
	for i := range w {
		w[i] = unit * float32(int32(rng.Uint32()>>8)-half)
	}
}
