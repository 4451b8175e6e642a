package optim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestOptimizersComeBack: an optimizer that takes over another's state takes the same
// steps from there on.
func TestOptimizersComeBack(t *testing.T) {
	for name, fresh := range map[string]func() optim.Stateful{
		"sgd":   func() optim.Stateful { return &optim.SGD{Momentum: 0.9} },
		"adamw": func() optim.Stateful { return &optim.AdamW{} },
		"lion":  func() optim.Stateful { return &optim.Lion{Beta1: 0.99} },
		"muon": func() optim.Stateful {
			return &optim.Muon{Layout: layoutOf(t, tensor.Spec{Name: "w", Shape: []int{1, 2}})}
		},
	} {
		step := func(o optim.Optimizer, g float32) float32 {
			grad := tensor.Vector{g, -g}
			o.Delta(grad, tensor.Vector{1, 2}, 0.1)
			return grad[0]
		}
		old, kept := fresh(), fresh()
		if err := kept.Restore(old.State()); err != nil {
			t.Errorf("%s: a state before the first step: %v", name, err)
		}
		step(old, 1)
		state := old.State()
		for name, v := range state.Vectors {
			state.Vectors[name] = slices.Clone(v)
		}
		if err := kept.Restore(state); err != nil {
			t.Fatal(err)
		}
		if a, b, anew := step(old, -0.5), step(kept, -0.5), step(fresh(), -0.5); a != b || a == anew {
			t.Errorf("%s: the next step is %g, %g after it was restored, %g of one that knows nothing", name, a, b, anew)
		}
		old.(optim.Resetter).Reset()
		if a, anew := step(old, -0.5), step(fresh(), -0.5); a != anew {
			t.Errorf("%s: the next step of one that has forgotten is %g, %g of one that knows nothing", name, a, anew)
		}
	}
}

// TestForeignOptimizerState: what is no state of the optimizer is refused.
func TestForeignOptimizerState(t *testing.T) {
	nan := tensor.Vector{0}
	nan[0] /= nan[0]
	one := tensor.Vector{1}
	for name, c := range map[string]struct {
		optimizer optim.Stateful
		state     optim.State
		want      string
	}{
		"another optimizer's": {&optim.SGD{}, optim.State{Kind: "adamw"}, `of "adamw"`},
		"a state of AdamW":    {&optim.Lion{}, optim.State{Kind: "adamw"}, `of "adamw"`},
		"another name":        {&optim.SGD{}, optim.State{Kind: "sgd", Vectors: map[string]tensor.Vector{"x": one}}, "no velocity"},
		"not finite":          {&optim.SGD{}, optim.State{Kind: "sgd", Vectors: map[string]tensor.Vector{"velocity": nan}}, "NaN"},
		"half":                {&optim.AdamW{}, optim.State{Kind: "adamw", Vectors: map[string]tensor.Vector{"mean": one}}, "1 vectors, want 2"},
		"unequal":             {&optim.AdamW{}, optim.State{Kind: "adamw", Vectors: map[string]tensor.Vector{"mean": one, "square": {1, 2}}}, "2 values of square, want 1"},
		"negative":            {&optim.AdamW{}, optim.State{Kind: "adamw", Vectors: map[string]tensor.Vector{"mean": one, "square": {-1}}}, "negative"},
	} {
		if err := c.optimizer.Restore(c.state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
