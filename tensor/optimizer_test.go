package tensor

import (
	"math"
	"testing"
)

// The oracles below follow the papers in float64, with none of the kernels'
// rearrangement.

func TestMomentumFollowsTheFormula(t *testing.T) {
	for _, nesterov := range []bool{false, true} {
		h := MomentumRates{Rate: 0.1, Momentum: 0.9, Decay: 0.01, Nesterov: nesterov}
		x, v := 1.0, 0.0 // minimizing x²
		params, velocity, grad := Vector{1}, Vector{0}, Vector{0}
		for range 50 {
			g := 2*x + h.Decay*x
			v = h.Momentum*v + g
			move := v
			if nesterov {
				move = g + h.Momentum*v
			}
			x -= h.Rate * move

			grad[0] = 2 * params[0]
			h.Delta(grad, velocity, grad, params)
			Add(params, grad)
		}
		if !(math.Abs(float64(params[0])-x) <= 1e-6) { // NaN too
			t.Errorf("nesterov %v: x is %v, want %v", nesterov, params[0], x)
		}
	}
}

func TestAdamWFollowsTheFormula(t *testing.T) {
	h := AdamWRates{Rate: 0.05, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1}
	x, m, s := 1.0, 0.0, 0.0 // minimizing (x-3)²
	params, mean, square, grad := Vector{1}, Vector{0}, Vector{0}, Vector{0}
	for step := 1; step <= 200; step++ {
		g := 2 * (x - 3)
		m = h.Beta1*m + (1-h.Beta1)*g
		s = h.Beta2*s + (1-h.Beta2)*g*g
		mHat := m / (1 - math.Pow(h.Beta1, float64(step)))
		sHat := s / (1 - math.Pow(h.Beta2, float64(step)))
		x -= h.Rate * (mHat/(math.Sqrt(sHat)+h.Epsilon) + h.Decay*x)

		grad[0] = 2 * (params[0] - 3)
		h.Step = uint64(step)
		h.Delta(grad, mean, square, grad, params)
		Add(params, grad)
		if !(math.Abs(float64(params[0])-x) <= 2e-5) {
			t.Fatalf("step %d: x is %v, want %v", step, params[0], x)
		}
	}
}

func TestLionFollowsTheFormula(t *testing.T) {
	h := LionRates{Rate: 0.01, Beta1: 0.9, Beta2: 0.99, Decay: 0.1}
	x, m := 1.0, 0.0 // minimizing (x-3)²
	params, mean, grad := Vector{1}, Vector{0}, Vector{0}
	for step := 1; step <= 150; step++ {
		g := 2 * (x - 3)
		x -= h.Rate * (math.Copysign(1, h.Beta1*m+(1-h.Beta1)*g) + h.Decay*x)
		m = h.Beta2*m + (1-h.Beta2)*g

		grad[0] = 2 * (params[0] - 3)
		h.Delta(grad, mean, grad, params)
		Add(params, grad)
		if !(math.Abs(float64(params[0])-x) <= 2e-5) {
			t.Fatalf("step %d: x is %v, want %v", step, params[0], x)
		}
	}
	mean, grad = Vector{0, 0, 0}, Vector{0, 7, -1e-30}
	h.Delta(grad, mean, grad, make(Vector, 3))
	if grad[0] != 0 || grad[1] != -0.01 || grad[2] != 0.01 {
		t.Errorf("the steps for 0, 7 and -1e-30 are %v", grad)
	}
}

// TestAdamWFirstStep: with the bias corrected, the first step has the length of
// the rate whatever the gradient's size, and Step 0 is taken for it.
func TestAdamWFirstStep(t *testing.T) {
	for _, step := range []uint64{0, 1} {
		grad := Vector{1e-3, -5, 1e6}
		h := AdamWRates{Rate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: step}
		h.Delta(grad, make(Vector, 3), make(Vector, 3), grad, make(Vector, 3))
		for i, want := range []float64{-0.01, 0.01, -0.01} {
			if !(math.Abs(float64(grad[i])-want) <= 1e-6) {
				t.Errorf("step %d: delta %d is %v, want %v", step, i, grad[i], want)
			}
		}
	}
}

func TestPower(t *testing.T) {
	for _, base := range []float64{0, 0.5, 0.9, 0.999, 1} {
		for _, n := range []uint64{0, 1, 2, 3, 10, 1000, 1 << 40} {
			want := math.Pow(base, float64(n))
			if got := power(base, n); !(math.Abs(got-want) <= 1e-12*want) {
				t.Errorf("power(%v, %d) = %v, want %v", base, n, got, want)
			}
		}
	}
}
