package trainer

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestLocalSteps: steps of a trainer's own leave the replica as it is, and what they came to is its gradient: of what
// is trained, of statistics, and nothing of what is frozen. Another model begins anew.
func TestLocalSteps(t *testing.T) {
	machine := collective.Traits{Gradients: true, Local: collective.Local{Every: 3, Rate: 1}}
	run := &alone{rate: 0.5}
	o := &following{}
	tr, r := mixed(t, machine, o, averaging.Pace{}, run)
	step := func(first float32) collective.Event {
		x, grad := tr.Begin()
		if x[0] != first {
			t.Errorf("a step begins with %v, want %g", x, first)
		}
		copy(grad, tensor.Vector{1, 1, 0.25, -4, 1, 1, 1})
		event, err := tr.Gradient(time.Second, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		tr.Proceed(time.Second)
		return event
	}
	before := contents(r)
	for _, first := range []float32{1, 0.5} {
		if event := step(first); event.Kind != averaging.StepDone || !slices.Equal(contents(r), before) {
			t.Errorf("%s, and the model is %v", event, contents(r))
		}
	}
	if err := r.Replace(tensor.Vector{1, 2, 7}); err != nil { // of what is exchanged
		t.Fatal(err)
	}
	step(1)
	step(0.5)
	if event := step(0); event.Kind != collective.GradientDone || event.Samples != 6 {
		t.Errorf("the last is reported as %+v", event)
	}
	if want := (tensor.Vector{1, 2, 3.75, -8, 5, 6, 7}); !slices.Equal(contents(r), want) {
		t.Errorf("once the gradient is handed over: %v, want %v", contents(r), want)
	}
	if len(run.steps) != 5 || run.steps[4].Samples != 2 {
		t.Errorf("counted %+v", run.steps)
	}
	if len(o.courses) != 5 {
		t.Errorf("the optimizer is told of the run %d times in 5 steps", len(o.courses))
	}
	mean, x := make(tensor.Vector, values), make(tensor.Vector, values)
	if err := r.Load(0, 1, false, false); err != nil {
		t.Fatal(err)
	}
	r.Drain(mean, 0, 1, 0)
	if err := tr.Update(collective.Action{}, mean, x); err != nil {
		t.Fatal(err)
	}
	if want := (tensor.Vector{-0.5, 0.5, 3.75, -8, 5, 4.5, 10}); !slices.Equal(contents(r), want) {
		t.Errorf("after the update: %v, want %v", contents(r), want)
	}
}
