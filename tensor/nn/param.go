package nn

import (
	"math"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

// Param is one range that a layer learns: its name (torch's name within the layer), and the values that training
// starts from.
type Param struct {
	tensor.Spec
	Start Start
}

// Start is the distribution of the values that training starts from. The zero value is all zeros.
type Start struct{ bound, deviation, fill float64 }

// Uniform starts from values evenly spread between -bound and bound.
func Uniform(bound float64) Start { return Start{bound: bound} }

// Normal starts from values with mean 0 and a standard deviation. Each is a sum of twelve uniform numbers, so none is
// farther from 0 than six deviations.
func Normal(deviation float64) Start { return Start{deviation: deviation} }

// Fill starts from the same value everywhere.
func Fill(value float64) Start { return Start{fill: value} }

// fanIn is torch's default for weights and biases of layers with n inputs for each output.
func fanIn(n int) Start { return Uniform(1 / math.Sqrt(float64(n))) }

// set fills w. It computes each value from integers by sums and one product, which every platform rounds alike.
func (s Start) set(w tensor.Vector, rng *rand.Rand) {
	const half = 1 << 23
	switch {
	case s.bound != 0:
		unit := float32(s.bound) / half
		for i := range w {
			w[i] = unit * float32(int32(rng.Uint32()>>8)-half)
		}
	case s.deviation != 0:
		const terms = 12 // each of variance 1/12
		unit := s.deviation / (1 << 32)
		for i := range w {
			sum := int64(-terms / 2 << 32)
			for range terms {
				sum += int64(rng.Uint32())
			}
			w[i] = float32(unit * float64(sum))
		}
	default:
		for i := range w {
			w[i] = float32(s.fill)
		}
	}
}

// WithStart is a layer whose weights, and those of the layers within it, start from s. Biases and the scales of
// normalizations keep their start.
func WithStart(l Layer, s Start) Layer {
	if n, ok := l.(named); ok {
		return named{started{n.Layer, s}, n.name}
	}
	return started{l, s}
}

type started struct {
	Layer
	start Start
}

func (s started) String() string { return nameOf(s.Layer) }

func (s started) fuse(next []Layer) (Layer, int) {
	if f, ok := s.Layer.(fuser); ok {
		if fused, n := f.fuse(next); fused != nil {
			return started{fused, s.start}, n
		}
	}
	return nil, 0
}

func (s started) For(in Shape) (Built, error) {
	f, err := s.Layer.For(in)
	for i, p := range f.Params {
		switch p.Kind {
		case tensor.Dense, tensor.Conv, tensor.Embedding:
			f.Params[i].Start = s.start
		}
	}
	return f, err
}
