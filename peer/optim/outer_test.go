package optim_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// outerOracle is the rule of outer momentum as it is written, in float64, around plain gradient descent.
type outerOracle struct {
	every           int
	rate, momentum  float64
	g, last         []float64 // last is nil while it is not known
	steps           int
	exchanges, then uint64 // completed now, and when last was set
	progress        float64
}

func (o *outerOracle) step(grad, x tensor.Vector, rate float64) []float64 {
	delta, y := make([]float64, len(grad)), make([]float64, len(grad))
	for i := range grad {
		delta[i] = -rate * float64(grad[i])
		y[i] = float64(x[i]) + delta[i]
		o.g[i] += delta[i]
	}
	if o.steps++; o.steps < o.every {
		return delta
	}
	gamma := o.momentum
	if o.progress > 0.8 {
		gamma *= (1 - o.progress) / 0.2
	}
	for i := range delta {
		delta[i] += (o.rate - 1) * o.g[i]
	}
	if o.last != nil && o.exchanges != o.then {
		var g, way float64
		for i := range y {
			g += o.g[i] * o.g[i]
			way += (y[i] - o.last[i]) * (y[i] - o.last[i])
		}
		if a := math.Min(1, 2*math.Sqrt(g)/(gamma*math.Sqrt(way))); a > 0 { // false for 0/0
			for i := range delta {
				delta[i] += gamma * a * (y[i] - o.last[i])
			}
		}
	}
	o.last, o.steps, o.then = y, 0, o.exchanges
	clear(o.g)
	return delta
}

// TestOuterIsItsRule: whatever exchanges do to the parameters between steps, and whenever a pause, a reset or a restart
// comes, the steps are those of the oracle.
func TestOuterIsItsRule(t *testing.T) {
	const n = 5
	rapid.Check(t, func(t *rapid.T) {
		oracle := &outerOracle{
			every: rapid.IntRange(1, 3).Draw(t, "every"), rate: rapid.Float64Range(0.5, 2).Draw(t, "rate"),
			momentum: rapid.Float64Range(0, 0.9).Draw(t, "momentum"), g: make([]float64, n),
		}
		fresh := func() *optim.Outer {
			return &optim.Outer{Inner: &optim.SGD{}, Every: oracle.every, Rate: oracle.rate, Momentum: oracle.momentum}
		}
		outer := fresh()
		vector := func(name string) tensor.Vector {
			return rapid.SliceOfN(rapid.Float32Range(-1, 1), n, n).Draw(t, name)
		}
		x := vector("x")
		for range rapid.IntRange(12, 48).Draw(t, "steps") {
			pause := 1.0
			if rapid.Bool().Draw(t, "exchange") {
				tensor.Add(x, vector("difference"))
				oracle.exchanges++
			}
			switch rapid.SampledFrom([]string{"", "", "", "", "pause", "reset", "restart"}).Draw(t, "before") {
			case "pause":
				pause = rapid.Float64Range(3, 6).Draw(t, "pause") * float64(oracle.every)
				if pause > 4*float64(oracle.every) {
					oracle.last = nil
				}
			case "reset":
				outer.Reset()
				oracle.last, oracle.steps = nil, 0
				clear(oracle.g)
			case "restart":
				state := outer.State()
				outer = fresh()
				if err := outer.Restore(state); err != nil {
					t.Fatal(err)
				}
				oracle.last, oracle.steps = nil, 0
			}
			oracle.progress = rapid.Float64Range(0.6, 1).Draw(t, "progress")
			outer.Follow(optim.Course{Progress: oracle.progress, Exchanges: oracle.exchanges, Pause: pause})
			grad := vector("gradient")
			want := oracle.step(grad, x, 0.1)
			outer.Delta(grad, slices.Clone(x), 0.1)
			for i := range want {
				if math.Abs(float64(grad[i])-want[i]) > 1e-4 {
					t.Fatalf("the step is %v, want %v", grad, want)
				}
			}
			tensor.Add(x, grad)
		}
	})
}

// TestOuterIsNothingByItself: without exchanges, and with a rate of 1, the steps are those of the inner optimizer.
func TestOuterIsNothingByItself(t *testing.T) {
	outer, inner := &optim.Outer{Inner: &optim.SGD{Momentum: 0.9}, Every: 2, Momentum: 0.5}, &optim.SGD{Momentum: 0.9}
	if a, b := minimize(outer, 50, 0.05), minimize(inner, 50, 0.05); a != b {
		t.Errorf("it ends %g from the minimum, %g without", a, b)
	}
}

// TestOuterTakesOlderStates: a checkpoint of a release, or of a run, without it goes on with it.
func TestOuterTakesOlderStates(t *testing.T) {
	inner := &optim.SGD{Momentum: 0.9}
	inner.Delta(tensor.Vector{1, 2}, tensor.Vector{0, 0}, 0.1)
	outer := &optim.Outer{Inner: &optim.SGD{Momentum: 0.9}, Every: 8, Momentum: 0.5}
	state := inner.State()
	state.Vectors["velocity"] = slices.Clone(state.Vectors["velocity"])
	if err := outer.Restore(state); err != nil {
		t.Fatal(err)
	}
	a, b := tensor.Vector{1, 1}, tensor.Vector{1, 1}
	inner.Delta(a, tensor.Vector{0, 0}, 0.1)
	outer.Delta(b, tensor.Vector{0, 0}, 0.1)
	if !slices.Equal(a, b) {
		t.Errorf("the next step is %v, want %v", b, a)
	}
	if err := (&optim.SGD{}).Restore(outer.State()); err == nil || !strings.Contains(err.Error(), `"outer sgd"`) {
		t.Errorf("without it: %v", err)
	}
	nan := tensor.Vector{float32(math.NaN())}
	bad := optim.State{Kind: "outer sgd", Vectors: map[string]tensor.Vector{"outer": nan}}
	if err := outer.Restore(bad); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("not finite: %v", err)
	}
}

func TestOuterSettings(t *testing.T) {
	err := (&optim.Outer{Momentum: 1, Rate: -1}).Validate(nil)
	for _, want := range []string{"Momentum is 1", "Rate is -1", "Every is 0", "Inner is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	err = (&optim.Outer{Every: 1, Inner: &optim.SGD{Momentum: 2}}).Validate(nil)
	if err == nil || !strings.Contains(err.Error(), "Inner: Momentum is 2") {
		t.Errorf("of the inner optimizer: %v", err)
	}
}

func TestOuterAllocatesNothing(t *testing.T) {
	outer := &optim.Outer{Inner: &optim.SGD{Momentum: 0.9}, Every: 2, Momentum: 0.5}
	grad, x := make(tensor.Vector, 100), make(tensor.Vector, 100)
	var exchanges uint64
	if n := testing.AllocsPerRun(50, func() {
		exchanges++
		grad[0] = 1
		outer.Follow(optim.Course{Exchanges: exchanges})
		outer.Delta(grad, x, 0.1)
	}); n > 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

// TestOuterTakesNothingOfAStateThatItRefuses, and all of one that it takes.
func TestOuterTakesNothingOfAStateThatItRefuses(t *testing.T) {
	foreign := &optim.Outer{Inner: &optim.SGD{Momentum: 0.9}, Every: 2, Rate: 2}
	foreign.Delta(tensor.Vector{100}, tensor.Vector{0}, 1)
	o, fresh := &optim.Outer{Inner: &optim.AdamW{}, Every: 2, Rate: 2}, &optim.Outer{Inner: &optim.AdamW{}, Every: 2, Rate: 2}
	if err := o.Restore(foreign.State()); err == nil {
		t.Fatal("the state of another optimizer is taken")
	}
	for range 2 {
		got, want := tensor.Vector{1}, tensor.Vector{1}
		o.Delta(got, tensor.Vector{0}, 0.1)
		fresh.Delta(want, tensor.Vector{0}, 0.1)
		if got[0] != want[0] {
			t.Errorf("a step of %g after a state was refused, want %g", got[0], want[0])
		}
	}
	if err := o.Restore((&optim.Outer{Inner: &optim.AdamW{}, Every: 2}).State()); err != nil {
		t.Fatal(err)
	}
	if s := o.State(); len(s.Vectors["outer"]) != 0 {
		t.Errorf("after an empty state %v is left", s.Vectors["outer"])
	}
}
