package optim_test

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// minimize takes steps towards the minimum of Σ kᵢ(xᵢ − 1)²/2, whose curvatures
// differ a hundredfold, and returns how far it ends from there.
func minimize(o optim.Optimizer, steps int, rate float64) float64 {
	curvature := tensor.Vector{0.1, 1, 10}
	x := tensor.Vector{0, 0, 0}
	grad := make(tensor.Vector, 3)
	for range steps {
		for i := range x {
			grad[i] = curvature[i] * (x[i] - 1)
		}
		o.Delta(grad, append(tensor.Vector(nil), x...), rate)
		tensor.Add(x, grad)
	}
	far := 0.0
	for _, v := range x {
		far = max(far, math.Abs(float64(v)-1))
	}
	return far
}

func TestOptimizersFindTheMinimum(t *testing.T) {
	for name, c := range map[string]struct {
		optimizer optim.Optimizer
		rate      float64
		most      float64
	}{
		"sgd":      {&optim.SGD{}, 0.15, 0.06},
		"momentum": {&optim.SGD{Momentum: 0.9}, 0.05, 1e-3},
		"nesterov": {&optim.SGD{Momentum: 0.9, Nesterov: true}, 0.05, 1e-3},
		"adamw":    {&optim.AdamW{}, 0.05, 1e-2},
		"lion":     {&optim.Lion{}, 0.01, 0.1}, // which ends within a few steps of the rate
	} {
		if far := minimize(c.optimizer, 200, c.rate); !(far <= c.most) {
			t.Errorf("%s ends %g from the minimum, want %g at most", name, far, c.most)
		}
	}
}

func TestWeightDecayShrinksWhatNoGradientHolds(t *testing.T) {
	for name, optimizer := range map[string]optim.Optimizer{
		"sgd": &optim.SGD{WeightDecay: 0.1}, "adamw": &optim.AdamW{WeightDecay: 0.1}, "lion": &optim.Lion{WeightDecay: 0.1},
	} {
		grad := make(tensor.Vector, 1)
		optimizer.Delta(grad, tensor.Vector{2}, 0.5)
		if want := float32(-0.1); math.Abs(float64(grad[0]-want)) > 1e-6 {
			t.Errorf("%s: step %g, want %g", name, grad[0], want)
		}
	}
}
