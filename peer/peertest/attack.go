package peertest

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

// Lie is a way to lie.
type Lie string

// The lies. They are told of models by peers that average models, and of gradients by
// those that average gradients.
const (
	// Noise: normally distributed numbers, Strength their standard deviation.
	Noise Lie = "noise"
	// SignFlip: the opposite of what the other has, Strength times as large; of a
	// gradient the opposite of the own.
	SignFlip Lie = "sign-flip"
	// Push: what the other has, less Strength in each value; of a gradient the own.
	Push Lie = "push"
)

// Attack lets a peer lie in every exchange. It runs the same code as everybody, on
// values that are replaced.
type Attack struct {
	Peer     int
	Lie      Lie
	Strength float64
}

func (a Attack) validate(peers int) error {
	if a.Peer < 0 || a.Peer >= peers {
		return fmt.Errorf("peer %d of %d", a.Peer, peers)
	}
	switch a.Lie {
	case Noise, SignFlip, Push:
		return nil
	}
	return fmt.Errorf("%q is no lie: want %s, %s or %s", a.Lie, Noise, SignFlip, Push)
}

// tell replaces x by the lie.
func (a Attack) tell(rng *rand.Rand, x tensor.Vector) {
	for i, v := range x {
		switch a.Lie {
		case Noise:
			x[i] = float32(rng.NormFloat64() * a.Strength)
		case SignFlip:
			x[i] = -float32(a.Strength) * v
		case Push:
			x[i] = v - float32(a.Strength)
		}
	}
}
