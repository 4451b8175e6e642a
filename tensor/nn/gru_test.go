package nn_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestGRUIsItsFormula: two places of one value, by hand.
func TestGRUIsItsFormula(t *testing.T) {
	m := built(t, []int{2, 1}, nn.GRU(1, 1))
	w := tensor.Vector{0.5, -0.4, 1.5, 0.3, 0.7, -0.8, 0.1, 0.2, -0.1, 0.05, -0.3, 0.4}
	x, got := tensor.Vector{0.9, -1.2}, make(tensor.Vector, 2)
	m.Predict(w, got, x)
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	at := func(i int) float64 { return float64(w[i]) }
	h := 0.0
	for i, v := range x {
		r := sigmoid(at(0)*float64(v) + at(6) + at(3)*h + at(9))
		z := sigmoid(at(1)*float64(v) + at(7) + at(4)*h + at(10))
		n := math.Tanh(at(2)*float64(v) + at(8) + r*(at(5)*h+at(11)))
		h = (1-z)*n + z*h
		if math.Abs(float64(got[i])-h) > 1e-6 {
			t.Errorf("place %d: %v, want %v", i, got[i], h)
		}
	}
}

// TestGRULearnsToRemember: the output at the last place is the input at the first one, which no layer without a memory
// can say.
func TestGRULearnsToRemember(t *testing.T) {
	m := built(t, []int{6, 1}, nn.GRU(1, 8), nn.Linear(8, 1))
	rng := rand.New(rand.NewPCG(5, 5))
	params, n := m.Init(1).Vector(), m.Layout().Len()
	grad, mean, square := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
	trainer, first, loss := m.Trainer(32, nn.MeanSquare()), 0.0, 0.0
	for step := range uint64(300) {
		x := normal(rng, 32*6)
		y := make(tensor.Vector, len(x))
		for i := range x {
			y[i] = x[i/6*6]
		}
		if loss = trainer.Gradient(params, grad, x, y); step == 0 {
			first = loss
		}
		tensor.AdamWRates{Rate: 0.02, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: step + 1}.Delta(grad, mean, square, grad, params)
		tensor.Add(params, grad)
	}
	if loss > 0.1*first {
		t.Errorf("a loss of %v, %v at first", loss, first)
	}
}

func TestGRURefuses(t *testing.T) {
	for _, in := range [][]int{{4}, {3, 5}, {2, 3, 4}} {
		if _, err := nn.Sequential(nn.GRU(4, 2)).Build(in...); err == nil || !strings.Contains(err.Error(), "want sequences of 4 values a place") {
			t.Errorf("%v: %v", in, err)
		}
	}
}

// TestGRUsExamplesAreApart: the gradient of a batch is the mean of those of its examples, so none begins where another
// ended.
func TestGRUsExamplesAreApart(t *testing.T) {
	const examples, places, in, hidden = 3, 4, 2, 5
	m := built(t, []int{places, in}, nn.Linear(in, in), nn.GRU(in, hidden))
	rng := rand.New(rand.NewPCG(6, 6))
	params, x, y := m.Init(1).Vector(), normal(rng, examples*places*in), normal(rng, examples*places*hidden)
	all, mean, one := make(tensor.Vector, len(params)), make(tensor.Vector, len(params)), make(tensor.Vector, len(params))
	trainer := m.Trainer(examples, nn.MeanSquare())
	trainer.Gradient(params, all, x, y)
	for i := range examples {
		trainer.Gradient(params, one, x[i*places*in:(i+1)*places*in], y[i*places*hidden:(i+1)*places*hidden])
		tensor.Axpy(mean, 1./examples, one)
	}
	if off := math.Sqrt(tensor.SquaredDistance(all, mean)); off > 1e-6 {
		t.Errorf("%v apart", off)
	}
}
