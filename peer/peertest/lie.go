package peertest

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

// Lie is what a peer shows the others in every exchange: it overwrites x. Where models are
// averaged x is the model of whom it lies to, and where gradients are, its own gradient.
// All else that it does is what everybody does.
type Lie func(random *rand.Rand, x tensor.Vector)

// LieOf is one of the lies that are known by a name: noise is normally distributed numbers
// of that standard deviation, sign-flip the opposite of x, so many times as large, and push
// is x less the strength in each value.
func LieOf(name string, strength float64) (Lie, error) {
	value, known := map[string]func(random *rand.Rand, v float32) float32{
		"noise":     func(random *rand.Rand, _ float32) float32 { return float32(random.NormFloat64() * strength) },
		"sign-flip": func(_ *rand.Rand, v float32) float32 { return -float32(strength) * v },
		"push":      func(_ *rand.Rand, v float32) float32 { return v - float32(strength) },
	}[name]
	if !known {
		return nil, fmt.Errorf("%q is no lie: want noise, sign-flip or push", name)
	}
	return func(random *rand.Rand, x tensor.Vector) {
		for i, v := range x {
			x[i] = value(random, v)
		}
	}, nil
}
