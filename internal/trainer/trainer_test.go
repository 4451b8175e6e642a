package trainer

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// values is the size of the models in these tests.
const values = 7

// The machines of these tests: one that exchanges models, one that averages gradients, and
// one that makes one model of all in the end.
var exchanging, gradients, pooling = collective.Traits{}, collective.Traits{Gradients: true}, collective.Traits{Pools: true}

// alone is a run of one peer: so many steps, at a rate that is told.
type alone struct {
	steps []Step
	all   uint64
	peers int
	rate  float64
	at    float64 // the progress for which the rate was last asked
}

func (r *alone) Made(s Step) { r.steps = append(r.steps, s) }
func (r *alone) Steps() (own, all uint64, peers int) {
	return uint64(len(r.steps)), r.all, r.peers
}
func (r *alone) Exchanges() uint64 { return 0 }
func (r *alone) Progress() float64 { return 0.25 }
func (r *alone) Rate(progress float64) float64 {
	r.at = progress
	return r.rate
}

func newTrainer(t testing.TB, machine collective.Traits, optimizer optim.Optimizer, pace averaging.Pace, run Run) (*Trainer, *replica.Replica) {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replica.New(tensor.NewParams(layout), replica.Options{SliceLen: 3})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Replica: r, Optimizer: optimizer, Traits: machine, Pace: pace, Run: run}), r
}

func contents(r *replica.Replica) tensor.Vector {
	x := make(tensor.Vector, values)
	r.Snapshot(x)
	return x
}

// plain is the oracle: the loop that a trainer is, with heavy-ball momentum.
type plain struct {
	x, velocity tensor.Vector
	steps       int
}

func (p *plain) step(grad tensor.Vector, rate float64) {
	for i, g := range grad {
		v := float32(float32(0.5)*p.velocity[i]) + g
		if math.Abs(float64(v)) < 0x1p-100 { // nothing smaller is remembered
			v = 0
		}
		p.velocity[i] = v
		p.x[i] += float32(-float32(rate) * v)
	}
	p.steps++
}

func (p *plain) forget() { clear(p.velocity) }

// TestTrainerIsAPlainLoop: whatever happens between a snapshot and its gradient, the
// parameters, the count of steps and the errors are those of a loop of three lines.
func TestTrainerIsAPlainLoop(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		pools := rapid.Bool().Draw(t2, "pools")
		machine := collective.Traits{Pools: pools}
		run := &alone{}
		tr, r := newTrainer(t, machine, &optim.SGD{Momentum: 0.5}, averaging.Pace{}, run)
		oracle := &plain{x: make(tensor.Vector, values), velocity: make(tensor.Vector, values)}
		vector := func(label string) tensor.Vector {
			return rapid.SliceOfN(rapid.Float32Range(-2, 2), values, values).Draw(t2, label)
		}
		finished := false
		for range rapid.IntRange(1, 12).Draw(t2, "steps") {
			x, grad := tr.Begin()
			if !slices.Equal(x, oracle.x) || slices.ContainsFunc(grad, func(v float32) bool { return v != 0 }) {
				t2.Fatalf("lends %v and %v, want %v and zeros", x, grad, oracle.x)
			}
			copy(grad, vector("gradient"))
			run.rate = rapid.Float64Range(0.01, 1).Draw(t2, "rate")
			loss, want, replaced := 1.0, error(nil), false
			switch rapid.SampledFrom([]string{"", "", "", "exchange", "replace", "nan", "long", "loss", "finish"}).Draw(t2, "meanwhile") {
			case "exchange":
				d := vector("difference")
				r.Add(d)
				tensor.Add(oracle.x, d)
			case "replace":
				other := vector("other")
				if err := r.Replace(other); err != nil {
					t2.Fatal(err)
				}
				copy(oracle.x, other)
				want, replaced = ErrReplaced, true
			case "nan":
				grad[3] = float32(math.NaN())
				want = optim.ErrNotFinite
			case "loss":
				loss = math.NaN()
				want = optim.ErrNotFinite
			case "long":
				grad[0], run.rate = 1e12, 1
				want = optim.ErrNotFinite
				oracle.forget()
			case "finish":
				tr.Finish()
				finished = true
			}
			if finished && pools && want == nil {
				want = ErrOver
			}
			was := slices.Clone(grad)
			event, err := tr.Gradient(0, loss, 3)
			if !errors.Is(err, want) {
				t2.Fatalf("error %v, want %v", err, want)
			}
			switch {
			case want == nil && event.Kind != averaging.StepDone:
				t2.Fatalf("the machine is told %s", event)
			case want == nil:
				oracle.step(was, run.rate)
			case want == ErrOver:
				return
			case replaced:
				oracle.forget()
			}
			if got := contents(r); !slices.Equal(got, oracle.x) || len(run.steps) != oracle.steps {
				t2.Fatalf("%v after %d steps, want %v after %d", got, len(run.steps), oracle.x, oracle.steps)
			}
		}
	})
}

// applied is a step of which nothing is known.
var applied = Made{Steps: 1, Loss: math.NaN()}

// TestApply: a step of the caller's own counts as one, without a loss, and is held to the
// same.
func TestApply(t *testing.T) {
	run := &alone{}
	tr, r := newTrainer(t, pooling, &optim.SGD{}, averaging.Pace{}, run)
	one := tensor.Vector{1, 1, 1, 1, 1, 1, 1}
	if event, err := tr.Trade(0, one, nil, applied); err != nil || event.Kind != averaging.StepDone || !slices.Equal(contents(r), one) {
		t.Errorf("%s, %v: %v", event, err, contents(r))
	}
	if _, err := tr.Trade(0, make(tensor.Vector, 7), nil, Made{Steps: 1, Loss: 0.5, Samples: 8}); err != nil {
		t.Error(err)
	}
	if len(run.steps) != 2 || !math.IsNaN(run.steps[0].Loss) || run.steps[1].Loss != 0.5 || run.steps[1].Samples != 8 {
		t.Errorf("counted %+v", run.steps)
	}
	if _, err := tr.Trade(0, one, nil, Made{Steps: 1, Loss: 1, Samples: -5}); err == nil || !strings.Contains(err.Error(), "Result.Samples is -5") || len(run.steps) != 2 {
		t.Errorf("a step of -5 samples: %v", err)
	}
	if _, err := tr.Gradient(0, 1, -5); err == nil || !strings.Contains(err.Error(), "Result.Samples is -5") || len(run.steps) != 2 {
		t.Errorf("a gradient of -5 samples: %v", err)
	}
	long := tensor.Vector{1e12, 0, 0, 0, 0, 0, 0}
	if _, err := tr.Trade(0, long, nil, applied); !errors.Is(err, optim.ErrNotFinite) {
		t.Errorf("a step of 1e12: %v", err)
	}
	tr.Finish()
	if _, err := tr.Trade(0, one, nil, applied); !errors.Is(err, ErrOver) || !slices.Equal(contents(r), one) {
		t.Errorf("a step after the run: %v, %v", err, contents(r))
	}
	tr.Close()
	if _, err := tr.Trade(0, one, nil, applied); !errors.Is(err, ErrClosed) || !slices.Equal(contents(r), one) || len(run.steps) != 2 {
		t.Errorf("a step after Close: %v, %v", err, contents(r))
	}
}

// TestAStepForAModelThatWasReplacedIsLeftOut: the caller made it before it could know.
func TestAStepForAModelThatWasReplacedIsLeftOut(t *testing.T) {
	run := &alone{}
	tr, r := newTrainer(t, exchanging, &optim.SGD{}, averaging.Pace{}, run)
	one, other := tensor.Vector{1, 1, 1, 1, 1, 1, 1}, tensor.Vector{7, 6, 5, 4, 3, 2, 1}
	if err := r.Replace(other); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Trade(0, one, nil, applied); !errors.Is(err, ErrReplaced) || !slices.Equal(contents(r), other) || len(run.steps) != 0 {
		t.Errorf("%v: %v, %d steps counted", err, contents(r), len(run.steps))
	}
	if _, err := tr.Trade(0, one, nil, applied); err != nil || len(run.steps) != 1 {
		t.Errorf("the next: %v, %d steps counted", err, len(run.steps))
	}
}

// TestNoStateOfAReplacedModelIsSaved: what the optimizer knows of the model before is no
// part of a checkpoint of the one that took its place.
func TestNoStateOfAReplacedModelIsSaved(t *testing.T) {
	tr, r := newTrainer(t, exchanging, &optim.AdamW{}, averaging.Pace{}, &alone{rate: 0.1})
	_, grad := tr.Begin()
	grad[0] = 1
	if _, err := tr.Gradient(0, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Replace(tensor.Vector{7, 6, 5, 4, 3, 2, 1}); err != nil {
		t.Fatal(err)
	}
	var state optim.State
	params := make(tensor.Vector, values)
	tr.Save(params, &state)
	if state.Kind != "adamw" || state.Steps != 0 || len(state.Vectors) != 0 || params[0] != 7 {
		t.Errorf("saved %v with %+v", params, state)
	}
	var again optim.AdamW
	if err := again.Restore(state); err != nil {
		t.Error(err)
	}
}

// TestGradientsAreHandedOver: with a machine that averages gradients a step counts when
// the machine lets the trainer go on, and its updates are made at the rate and of the
// share that it asks for.
func TestGradientsAreHandedOver(t *testing.T) {
	run := &alone{rate: 0.5}
	tr, r := newTrainer(t, gradients, &optim.SGD{Momentum: 1}, averaging.Pace{}, run)
	mean, x := make(tensor.Vector, values), make(tensor.Vector, values)
	update := func(a collective.Action, want float32) {
		t.Helper()
		_, grad := tr.Begin()
		for i := range grad {
			grad[i] = 4
		}
		event, err := tr.Gradient(0, 2, 0)
		if err != nil || event.Kind != collective.GradientDone || event.Samples != 1 || event.Progress != 0.25 {
			t.Fatalf("%+v, %v", event, err)
		}
		if err := r.Load(0, 1, false, false); err != nil {
			t.Fatal(err)
		}
		r.Drain(mean, 0, 1, 0)
		was := contents(r)[0]
		if err := tr.Update(a, mean, x); err != nil {
			t.Fatal(err)
		}
		if moved := contents(r)[0] - was; moved != want || run.at != a.Progress {
			t.Errorf("%s: moves by %g at progress %g, want %g", a, moved, run.at, want)
		}
	}
	update(collective.Action{Progress: 0.5}, -2)
	update(collective.Action{}, -4)           // with momentum
	update(collective.Action{Share: 0.5}, -3) // of 6
	update(collective.Action{Forget: true}, -2)
	if len(run.steps) != 0 {
		t.Errorf("%d steps before the machine says Proceed", len(run.steps))
	}
	tr.Proceed(time.Second)
	if len(run.steps) != 1 || run.steps[0].Loss != 2 || run.steps[0].Rate != 0.5 || run.steps[0].Samples != 1 {
		t.Errorf("counted %+v", run.steps)
	}
	mean[0] = float32(math.Inf(1))
	if err := tr.Update(collective.Action{}, mean, x); !errors.Is(err, optim.ErrNotFinite) {
		t.Errorf("an update that is not finite: %v", err)
	}
}

// TestWhatThePaceIsTold: the length of steps and how far the model has moved in such, the
// time between steps without rests, and the speed over windows.
func TestWhatThePaceIsTold(t *testing.T) {
	run := &alone{peers: 4}
	tr, _ := newTrainer(t, exchanging, &optim.SGD{}, averaging.Pace{Drift: 2, BySpeed: true}, run)
	step := func(at time.Duration, length float32) collective.Event {
		t.Helper()
		event, err := tr.Trade(at, tensor.Vector{length, 0, 0, 0, 0, 0, 0}, nil, applied)
		if err != nil {
			t.Fatal(err)
		}
		return event
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	e := step(0, 2)
	near("the stride", e.Stride, 2)
	near("what was moved", e.Moved, 1)
	near("the speed before a window", e.Speed, 0)
	near("the progress", e.Progress, 0.25)
	e = step(time.Second, 4)
	near("the stride", e.Stride, 2.2)
	near("what was moved", e.Moved, 6/2.2)
	near("the time between steps", run.steps[1].Between.Seconds(), 1)
	tr.Rest()
	step(time.Hour, 2)
	run.all = 12 // four of this peer's, after the first
	near("the time between steps", run.steps[2].Between.Seconds(), 1)
	e = step(time.Hour+2*time.Second, 2)
	near("the time between steps", run.steps[3].Between.Seconds(), 1.1)
	near("the speed", e.Speed, 3*4/12.0)
}

// TestSavedIsOfOneMoment: the copy has room for itself, and is of between two steps.
func TestSavedIsOfOneMoment(t *testing.T) {
	run := &alone{rate: 0.1}
	tr, r := newTrainer(t, exchanging, &optim.AdamW{}, averaging.Pace{}, run)
	var state optim.State
	params := make(tensor.Vector, values)
	if tr.Save(params, &state); state.Kind != "adamw" || len(state.Vectors) != 0 {
		t.Errorf("before the first step: %+v", state)
	}
	for range 2 {
		_, grad := tr.Begin()
		grad[0] = 1
		if _, err := tr.Gradient(0, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	tr.Save(params, &state)
	if state.Steps != 2 || len(state.Vectors["mean"]) != values || !slices.Equal(params, contents(r)) {
		t.Errorf("saved %v with %+v", params, state)
	}
	var again optim.AdamW
	if err := again.Restore(state); err != nil {
		t.Error(err)
	}
	tr.config.Optimizer = stateless{}
	if tr.Save(params, &state); state.Kind != "" || state.Vectors != nil {
		t.Errorf("of an optimizer without a state: %+v", state)
	}
}

type stateless struct{}

func (stateless) Delta(_, _ tensor.Vector, _ float64) {}

// counted is a run that keeps nothing.
type counted struct{ n, exchanges uint64 }

func (r *counted) Made(Step)                    { r.n++ }
func (r *counted) Steps() (uint64, uint64, int) { return r.n, r.n, 1 }
func (r *counted) Progress() float64            { return 0 }
func (r *counted) Exchanges() uint64            { return r.exchanges }
func (r *counted) Rate(float64) float64         { return 1e-3 }

func (r *counted) step(t testing.TB, tr *Trainer) {
	_, grad := tr.Begin()
	grad[0] = 1
	if _, err := tr.Gradient(time.Duration(r.n), 1, 1); err != nil {
		t.Fatal(err)
	}
}

// TestStepsAllocateNothing once the first has been made.
func TestStepsAllocateNothing(t *testing.T) {
	run := &counted{}
	tr, _ := newTrainer(t, exchanging, &optim.SGD{Momentum: 0.9}, averaging.Pace{Drift: 2, BySpeed: true}, run)
	run.step(t, tr)
	if n := testing.AllocsPerRun(100, func() { run.step(t, tr) }); n != 0 {
		t.Errorf("%g allocations a step", n)
	}
}

func BenchmarkStep(b *testing.B) {
	run := &counted{}
	tr, _ := newTrainer(b, exchanging, &optim.SGD{Momentum: 0.9}, averaging.Pace{Drift: 2}, run)
	b.ReportAllocs()
	for b.Loop() {
		run.step(b, tr)
	}
}
