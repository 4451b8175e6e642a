package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// againstDifferences holds the gradients of a model, over a few of its parameters of each
// range, and over the inputs of what lies behind a first Linear, against the differences
// of its loss: a mean square of random targets, which every output has a part in.
func againstDifferences(t *testing.T, m *nn.Model, examples int, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	x, y := normal(rng, examples*m.In().Len()), normal(rng, examples*m.Out().Len())
	againstDifferencesOf(t, m, rng, x, y, nn.MeanSquare())
}

func againstDifferencesOf(t *testing.T, m *nn.Model, rng *rand.Rand, x, y tensor.Vector, loss nn.Loss) {
	t.Helper()
	const few, mostBent = 6, 8 // of some 30 that are looked at
	trainer := m.Trainer(len(x)/m.In().Len(), loss)
	params, grad := m.Init(rng.Uint64()).Vector(), make(tensor.Vector, m.Layout().Len())
	for i := range params { // off zero, where biases start
		params[i] += float32(rng.NormFloat64()) * 0.05
	}
	trainer.Gradient(params, grad, x, y)
	length, bent := tensor.Norm2(grad), 0
	for _, r := range m.Layout().Ranges() {
		for range min(few, r.Len) {
			i := r.Offset + rng.IntN(r.Len)
			at := params[i]
			slope := func(h float32) float64 {
				params[i] = at + h
				up := trainer.Loss(params, x, y)
				params[i] = at - h
				down := trainer.Loss(params, x, y)
				params[i] = at
				return (up - down) / (2 * float64(h))
			}
			// A rectifier may bend the loss within some of the distances, and rarely
			// within all.
			off, want := math.Inf(1), 0.0
			for _, h := range []float32{1e-2, 3e-3, 1e-3} {
				if d := slope(h); math.Abs(float64(grad[i])-d) < off {
					off, want = math.Abs(float64(grad[i])-d), d
				}
			}
			if off > 5e-4*max(length, 1) {
				bent++
			}
			if off > 1e-2*max(length, 1) || bent > mostBent {
				t.Errorf("%s[%d]: gradient %v, by differences %v (of length %v)", r.Name, i-r.Offset, grad[i], want, length)
			}
		}
	}
}

func TestGradientsOfLinear(t *testing.T) {
	for seed := range uint64(20) {
		againstDifferences(t, perceptron(t), 1+int(seed)%7, seed)
		againstDifferences(t, built(t, []int{3, 4}, nn.LinearNoBias(4, 6), nn.Sequential(nn.ReLU(), nn.Linear(6, 2))), 3, seed)
	}
}
