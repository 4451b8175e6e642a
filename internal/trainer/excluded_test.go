package trainer

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// mixed is a model of seven values: 0 and 1 are trained, 2 and 3 counted by this peer, 4 is
// frozen, 5 trained by this peer, 6 counted and exchanged.
func mixed(t *testing.T, machine collective.Traits, optimizer optim.Optimizer, pace averaging.Pace, run Run) (*Trainer, *replica.Replica) {
	t.Helper()
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weight", Shape: []int{2}},
		tensor.Spec{Name: "mean", Shape: []int{2}, Kind: tensor.Statistic, Sharing: tensor.Local},
		tensor.Spec{Name: "frozen", Sharing: tensor.Frozen},
		tensor.Spec{Name: "adapter", Sharing: tensor.Local},
		tensor.Spec{Name: "seen", Kind: tensor.Statistic},
	)
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	copy(params.Vector(), tensor.Vector{1, 2, 3, 4, 5, 6, 7})
	r, err := replica.New(params, replica.Options{SliceLen: 3})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Replica: r, Optimizer: optimizer, Traits: machine, Pace: pace, Run: run}), r
}

// clumsy is an optimizer that makes the same step wherever it is, and keeps what it was given.
type clumsy struct{ grad, x tensor.Vector }

func (o *clumsy) Delta(grad, x tensor.Vector, _ float64) {
	o.grad, o.x = slices.Clone(grad), slices.Clone(x)
	for i := range grad {
		grad[i] = 10
	}
}

// TestStatisticsChangeByWhatTheGradientSays: whatever the optimizer does, which sees zeros
// of them and of what is frozen, and what is frozen does not change.
func TestStatisticsChangeByWhatTheGradientSays(t *testing.T) {
	optimizer, run := &clumsy{}, &alone{rate: 0.5}
	tr, r := mixed(t, exchanging, optimizer, averaging.Pace{Consensus: true}, run)
	_, grad := tr.Begin()
	copy(grad, tensor.Vector{1, 1, 0.25, -4, 1, 1, 1})
	event, err := tr.Gradient(0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := (tensor.Vector{11, 12, 3.25, 0, 5, 16, 8}); !slices.Equal(contents(r), want) {
		t.Errorf("the model is %v, want %v", contents(r), want)
	}
	if !slices.Equal(optimizer.grad, tensor.Vector{1, 1, 0, 0, 0, 1, 0}) || !slices.Equal(optimizer.x, tensor.Vector{1, 2, 0, 0, 0, 6, 0}) {
		t.Errorf("the optimizer sees %v at %v", optimizer.grad, optimizer.x)
	}
	if want := math.Sqrt(300); math.Abs(event.Stride-want) > 1e-6 {
		t.Errorf("the stride is %g, want %g, of what is trained", event.Stride, want)
	}
}

// TestNoOptimizerDecaysWhatItDoesNotTrain, nor does it remember anything of that.
func TestNoOptimizerDecaysWhatItDoesNotTrain(t *testing.T) {
	for name, optimizer := range map[string]optim.Stateful{
		"sgd":   &optim.SGD{Momentum: 0.9, WeightDecay: 0.5},
		"adamw": &optim.AdamW{WeightDecay: 0.5},
		"lion":  &optim.Lion{WeightDecay: 0.5},
	} {
		tr, r := mixed(t, exchanging, optimizer, averaging.Pace{}, &alone{rate: 0.5})
		for range 3 {
			_, grad := tr.Begin()
			grad[2], grad[4] = 1, 9
			if _, err := tr.Gradient(0, 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		x := contents(r)
		if x[0] >= 1 || x[5] >= 6 {
			t.Errorf("%s: %v: what is trained has not shrunk", name, x)
		}
		if x[2] != 6 || x[3] != 4 || x[4] != 5 || x[6] != 7 {
			t.Errorf("%s: %v, want 6 and 4 counted, 5 frozen, 7 counted", name, x)
		}
		for vector, v := range optimizer.State().Vectors {
			if v[2] != 0 || v[3] != 0 || v[4] != 0 || v[6] != 0 {
				t.Errorf("%s remembers %s %v", name, vector, v)
			}
		}
	}
}

// TestStatisticsWhereGradientsAreAveraged: a peer's own are its own, and change at once; those
// that are exchanged change by the mean, of which no share is taken.
func TestStatisticsWhereGradientsAreAveraged(t *testing.T) {
	run := &alone{rate: 0.5}
	tr, r := mixed(t, gradients, &optim.SGD{Momentum: 0.9, WeightDecay: 1}, averaging.Pace{}, run)
	_, grad := tr.Begin()
	copy(grad, tensor.Vector{0, 0, 0.25, -4, 1, 0, 3})
	if _, err := tr.Gradient(0, 1, 4); err != nil {
		t.Fatal(err)
	}
	if want := (tensor.Vector{1, 2, 3.25, 0, 5, 6, 7}); !slices.Equal(contents(r), want) {
		t.Errorf("once the gradient is handed over: %v, want %v", contents(r), want)
	}
	mean, x := make(tensor.Vector, values), make(tensor.Vector, values)
	if err := r.Load(0, 1, false, false); err != nil {
		t.Fatal(err)
	}
	r.Drain(mean, 0, 1, 0)
	if err := tr.Update(collective.Action{Share: 0.5}, mean, x); err != nil {
		t.Fatal(err)
	}
	if want := (tensor.Vector{0.75, 1.5, 3.25, 0, 5, 4.5, 10}); !slices.Equal(contents(r), want) {
		t.Errorf("after the update: %v, want %v", contents(r), want)
	}
	tr.Close()
	_, grad = tr.Begin()
	grad[2] = 1
	if _, err := tr.Gradient(time.Second, 1, 1); err != ErrClosed || contents(r)[2] != 3.25 {
		t.Errorf("after Close: error %v, %v", err, contents(r))
	}
}
