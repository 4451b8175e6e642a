package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// remembered is x rounded as the state of an optimizer.
func remembered(x float64) float64 {
	if x = round(x); math.Abs(x) < leastState {
		return 0
	}
	return x
}

// TestWhatHasNoGradientIsForgotten: what an optimizer remembers decays to 0, and not to denormal numbers, whose half is they themselves.
func TestWhatHasNoGradientIsForgotten(t *testing.T) {
	onAll(t, func(t *testing.T, v variant) {
		const n = 37
		x, delta, grad := make([]float32, n), make([]float32, n), make([]float32, n)
		once := func() (state []float32) {
			state = make([]float32, n)
			for i := range state {
				state[i] = float32(1 - 2*(i%2))
			}
			return state
		}
		velocity, ahead, mean, square, lion := once(), once(), once(), slices.Repeat([]float32{1}, n), once()
		for range 1000 {
			v.momentum(delta, velocity, grad, x, Momentum{Rate: 0.1, Momentum: 0.9})
			v.nesterov(delta, ahead, grad, x, Momentum{Rate: 0.1, Momentum: 0.9})
			v.adamW(delta, mean, square, grad, x, AdamW{Beta1: 0.9, Beta2: 0.9, OneMinus1: 0.1, OneMinus2: 0.1, Correction1: 1, Correction2: 1, Epsilon: 1e-8})
			v.lion(delta, lion, grad, x, Lion{Beta1: 0.9, OneMinus1: 0.1, Beta2: 0.9, OneMinus2: 0.1})
		}
		for _, state := range [][]float32{velocity, ahead, mean, square, lion} {
			if !slices.Equal(state, make([]float32, n)) {
				t.Errorf("after a thousand steps without a gradient %v is left", state)
			}
		}
	})
}

func TestMomentumEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		velocity0, grad0, x0 := values(random, n), values(random, n), values(random, n)
		c := Momentum{Rate: 0.1, Momentum: 0.9, Decay: 5e-4}
		pulled := func(i int) float64 {
			return round(float64(grad0[i]) + round(float64(c.Decay)*float64(x0[i])))
		}
		wantVelocity := func(i int) float64 {
			return remembered(round(float64(c.Momentum)*float64(velocity0[i])) + pulled(i))
		}
		for _, kind := range []struct {
			name string
			step func(delta, velocity, grad, x []float32, c Momentum)
			move func(i int) float64
		}{
			{"MomentumStep", v.momentum, wantVelocity},
			{"NesterovStep", v.nesterov, func(i int) float64 {
				return round(pulled(i) + round(float64(c.Momentum)*wantVelocity(i)))
			}},
		} {
			velocity, checkVelocity := guarded(t, velocity0)
			grad, checkGrad := guarded(t, grad0) // also delta, which may be grad
			x, checkX := guarded(t, x0)
			kind.step(grad, velocity, grad, x, c)
			sameBits(t, kind.name+" velocity", velocity, wantVelocity)
			sameBits(t, kind.name+" delta", grad, func(i int) float64 { return -float64(c.Rate) * kind.move(i) })
			checkVelocity()
			checkGrad()
			checkX()

			delta, again := make([]float32, n), slices.Clone(velocity0)
			kind.step(delta, again, grad0, x, c)
			sameBits(t, kind.name+" apart from grad", delta, func(i int) float64 { return float64(grad[i]) })
		}
	})
}

func TestAdamWEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		mean0, square0 := values(random, n), values(random, n)
		grad0, x0 := values(random, n), values(random, n)
		for i := range square0 {
			square0[i] = float32(math.Abs(float64(square0[i])))
		}
		c := AdamW{
			Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, OneMinus1: 0.1, OneMinus2: 0.001,
			Correction1: 1.25, Correction2: 7.5, Epsilon: 1e-8, Decay: 0.01,
		}
		f := func(x float32) float64 { return float64(x) }
		wantMean := func(i int) float64 {
			return remembered(round(f(c.Beta1)*f(mean0[i])) + round(f(c.OneMinus1)*f(grad0[i])))
		}
		wantSquare := func(i int) float64 {
			g2 := round(f(grad0[i]) * f(grad0[i]))
			return remembered(round(f(c.Beta2)*f(square0[i])) + round(f(c.OneMinus2)*g2))
		}
		wantDelta := func(i int) float64 {
			root := round(round(math.Sqrt(round(wantSquare(i)*f(c.Correction2)))) + f(c.Epsilon))
			u := round(round(wantMean(i)*f(c.Correction1)) / root)
			return -f(c.Rate) * round(u+round(f(c.Decay)*f(x0[i])))
		}
		mean, checkMean := guarded(t, mean0)
		square, checkSquare := guarded(t, square0)
		grad, checkGrad := guarded(t, grad0)
		x, checkX := guarded(t, x0)
		v.adamW(grad, mean, square, grad, x, c)
		sameBits(t, "mean", mean, wantMean)
		sameBits(t, "square", square, wantSquare)
		sameBits(t, "delta", grad, wantDelta)
		checkMean()
		checkSquare()
		checkGrad()
		checkX()

		delta := make([]float32, n)
		v.adamW(delta, slices.Clone(mean0), slices.Clone(square0), grad0, x0, c)
		sameBits(t, "delta apart from grad", delta, wantDelta)
	})
}

func TestLionEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		mean0, grad0, x0 := values(random, n), values(random, n), values(random, n)
		c := Lion{Rate: 1e-4, Beta1: 0.9, OneMinus1: 0.1, Beta2: 0.99, OneMinus2: 0.01, Decay: 0.1}
		f := func(x float32) float64 { return float64(x) }
		blend := func(old, new float32, i int) float64 {
			return round(round(f(old)*f(mean0[i])) + round(f(new)*f(grad0[i])))
		}
		wantDelta := func(i int) float64 {
			sign := 0.0
			switch b := blend(c.Beta1, c.OneMinus1, i); {
			case math.IsInf(b, 0):
				sign = math.NaN()
			case b != 0:
				sign = math.Copysign(1, b)
			}
			return -f(c.Rate) * round(sign+round(f(c.Decay)*f(x0[i])))
		}
		mean, checkMean := guarded(t, mean0)
		grad, checkGrad := guarded(t, grad0)
		x, checkX := guarded(t, x0)
		v.lion(grad, mean, grad, x, c)
		sameBits(t, "mean", mean, func(i int) float64 { return remembered(blend(c.Beta2, c.OneMinus2, i)) })
		sameBits(t, "delta", grad, wantDelta)
		checkMean()
		checkGrad()
		checkX()

		delta := make([]float32, n)
		v.lion(delta, slices.Clone(mean0), grad0, x0, c)
		sameBits(t, "delta apart from grad", delta, wantDelta)
	})
}

// TestLionShowsWhatIsNotFinite: the sign of an infinity would hide it, and the mean keep it.
func TestLionShowsWhatIsNotFinite(t *testing.T) {
	onAll(t, func(t *testing.T, v variant) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for at := range 40 {
				mean, grad := make([]float32, 40), make([]float32, 40)
				grad[at] = float32(bad)
				v.lion(grad, mean, grad, make([]float32, 40), Lion{Rate: 1, Beta1: 0.9, OneMinus1: 0.1, Beta2: 0.99, OneMinus2: 0.01})
				for i, d := range grad {
					if math.IsNaN(float64(d)) != (i == at) {
						t.Fatalf("gradient %g at %d: the step at %d is %g", bad, at, i, d)
					}
				}
			}
		}
	})
}
