package peertest

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

// Lie overwrites x, the values that a faulty peer shows the others in every exchange. If
// models are averaged, x is first the model of the partner; if gradients are averaged, x is
// first the peer's own gradient. In all other respects the peer follows the protocol.
type Lie func(random *rand.Rand, x tensor.Vector)

// LieOf is a lie by its name: noise is normally distributed numbers with standard deviation
// strength, sign-flip is x times -strength, and push subtracts strength from each value of
// x.
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
