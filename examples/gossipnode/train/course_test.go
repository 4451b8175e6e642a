package train

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTheLossRunsAway: one that is far above its start for long is told, once, until it is back;
// honest ones, however noisy, never are.
func TestTheLossRunsAway(t *testing.T) {
	noisy := func(seed uint64, sigma float64) func(int) float64 {
		r := rand.New(rand.NewPCG(seed, 21))
		return func(step int) float64 { return 2.3 * math.Exp(-float64(step)/300+sigma*r.NormFloat64()) }
	}
	spiked := func(seed uint64) func(int) float64 {
		r, calm := rand.New(rand.NewPCG(seed, 22)), noisy(seed, 0.3)
		return func(step int) float64 {
			if r.IntN(4) == 0 {
				return 1e6
			}
			return calm(step)
		}
	}
	type want struct {
		told int
		away bool
	}
	check := func(name string, of func(int) float64, steps int, w want) {
		t.Helper()
		var c course
		told := 0
		for step := range steps {
			if c.see(of(step), 10) {
				told++
			}
		}
		if told != w.told || c.away != w.away {
			t.Errorf("%s: told %d times, at the end away: %v; want %+v", name, told, c.away, w)
		}
	}
	for seed := range uint64(200) {
		check("honest", noisy(seed, 0.2), 2000, want{})
		check("a batch of one", noisy(seed, 1), 2000, want{})
		check("a fourth of the batches has a fault", spiked(seed), 2000, want{})
	}
	check("a rate that is nearly too high", func(step int) float64 { return 2.3 + 30*math.Exp(-float64(step)/20) }, 2000, want{})
	check("a start from a good model", func(step int) float64 { return 0.001 + float64(min(step, 100))/100 }, 2000, want{})
	check("some way above", func(step int) float64 { return 2.3 + float64(min(step, 60))/10 }, 2000, want{})
	check("no number", func(step int) float64 { return math.NaN() }, 2000, want{})
	check("slowly", func(step int) float64 { return 0.7 * math.Exp(float64(step)/100) }, 4000, want{1, true})
	check("at once, to 3e16", func(step int) float64 { return min(3e16, math.Pow(3, float64(step))) }, 400, want{1, true})
	check("noisily", func(step int) float64 { return noisy(1, 1)(0) * float64(1+step) }, 2000, want{1, true})
	check("and comes back", func(step int) float64 {
		if step < 300 {
			return 1e9
		}
		return 1
	}, 2000, want{0, false}) // it began there
	check("goes and comes back, twice", func(step int) float64 {
		if step%1000 > 500 {
			return 1e9
		}
		return 1
	}, 2400, want{2, false})
}
