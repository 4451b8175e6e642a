package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestLossesOfSingleOutputs: values by hand, as torch gives them, where a naive formula
// overflows too.
func TestLossesOfSingleOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		loss                        nn.Loss
		output, target, want, slope float64
	}{
		"square":                   {nn.MeanSquare(), 3, 1, 4, 4},
		"huber, near":              {nn.Huber(2), 3, 2, 0.5, 1},
		"huber, at delta":          {nn.Huber(2), 3, 1, 2, 2},
		"huber, above":             {nn.Huber(2), 7, 1, 10, 2},
		"huber, below":             {nn.Huber(2), -7, 1, 14, -2},
		"huber of torch":           {nn.Huber(0), 3, 1, 1.5, 1},
		"huber of no number":       {nn.Huber(math.NaN()), 3, 1, 1.5, 1},
		"binary, undecided":        {nn.BinaryCrossEntropy(), 0, 1, math.Ln2, -0.5},
		"binary, between":          {nn.BinaryCrossEntropy(), 2, 0.25, math.Log1p(math.Exp(-2)) + 1.5, 1/(1+math.Exp(-2)) - 0.25},
		"binary, right":            {nn.BinaryCrossEntropy(), 1e4, 1, 0, 0},
		"binary, wrong":            {nn.BinaryCrossEntropy(), 1e4, 0, 1e4, 1},
		"binary, wrong from below": {nn.BinaryCrossEntropy(), -1e4, 1, 1e4, -1},
	} {
		t.Run(name, func(t *testing.T) {
			errors := tensor.Vector{7, 7}
			sum := c.loss.Gradient(errors, tensor.Vector{float32(c.output), float32(c.output)}, tensor.Vector{float32(c.target), float32(c.target)}, 0.5)
			if math.Abs(sum-2*c.want) > 1e-6 || math.Abs(float64(errors[1])-c.slope/2) > 1e-6 {
				t.Errorf("%v and half a slope of %v, want %v and %v", sum, errors[1], 2*c.want, c.slope/2)
			}
			if got := c.loss.Terms(nn.Shape{3, 4}); got != 12 {
				t.Errorf("%d terms", got)
			}
		})
	}
}

func TestGradientsOfLosses(t *testing.T) {
	m := built(t, []int{4}, nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
	rng := rand.New(rand.NewPCG(1, 3))
	for range 5 {
		x, values := normal(rng, 5*4), normal(rng, 5*3)
		probabilities := make(tensor.Vector, len(values))
		for i := range probabilities {
			probabilities[i] = rng.Float32()
		}
		againstDifferencesOf(t, m, rng, x, values, nn.Huber(0.7))
		againstDifferencesOf(t, m, rng, x, probabilities, nn.BinaryCrossEntropy())
	}
}
