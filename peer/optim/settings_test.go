package optim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

func layoutOf(t testing.TB, specs ...tensor.Spec) *tensor.Layout {
	t.Helper()
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// TestOptimizersAreTorchs: five steps of torch 2.2's clip_grad_norm_ and optimizers, with
// weight decay of a matrix and none of a bias.
func TestOptimizersAreTorchs(t *testing.T) {
	layout := layoutOf(t, tensor.Spec{Name: "weight", Shape: []int{2, 2}}, tensor.Spec{Name: "bias", Shape: []int{2}, Kind: tensor.Bias})
	decayed := optim.Select(layout, optim.Weights)
	for name, c := range map[string]struct {
		optimizer optim.Optimizer
		want      tensor.Vector
	}{
		"AdamW(lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)": {
			&optim.AdamW{Beta2: 0.95, WeightDecay: 0.1, Decayed: decayed, Clip: 1},
			tensor.Vector{0.946000278, -1.94109476, 0.44857958, 2.93602014, 0.299024582, -1.54910815},
		},
		"SGD(lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1)": {
			&optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.1, Decayed: decayed, Clip: 1},
			tensor.Vector{0.941762865, -1.96045208, 0.371112525, 2.94280338, 0.274213254, -1.59709632},
		},
	} {
		x := tensor.Vector{1, -2, 0.5, 3, 0.25, -1.5}
		for step := range 5 {
			n := float32(step + 1)
			delta := tensor.Vector{0.3 * n, -0.1, 2, 0.05 * n, -0.4, 0.7 * n}
			c.optimizer.Delta(delta, append(tensor.Vector(nil), x...), 0.01)
			tensor.Add(x, delta)
		}
		if away := math.Sqrt(tensor.SquaredDistance(x, c.want)); !(away <= 1e-6) {
			t.Errorf("%s leads to %v, want %v", name, x, c.want)
		}
	}
}

// TestWeightDecayByRange: matrices decay, of whatever kind, and what a user selects.
func TestWeightDecayByRange(t *testing.T) {
	layout := layoutOf(t,
		tensor.Spec{Name: "scale", Shape: []int{2, 1}, Kind: tensor.Norm},
		tensor.Spec{Name: "dense", Shape: []int{1, 2}},
		tensor.Spec{Name: "kernel", Shape: []int{1, 1, 2, 1}, Kind: tensor.Conv},
		tensor.Spec{Name: "bias", Shape: []int{2}, Kind: tensor.Bias},
		tensor.Spec{Name: "table", Shape: []int{2, 1}, Kind: tensor.Embedding},
		tensor.Spec{Name: "seen", Shape: []int{1, 1}, Kind: tensor.Statistic},
		tensor.Spec{Name: "gate", Shape: []int{2}},
	)
	dense := func(r tensor.Range) bool { return r.Name == "gate" || r.Name == "scale" }
	for name, c := range map[string]struct {
		ranges optim.Ranges
		want   string // 1 where a value decays
	}{
		"all":     {optim.Ranges{}, "1111111111111"},
		"usual":   {optim.Select(layout, optim.Weights), "0011110011000"},
		"by name": {optim.Select(layout, dense), "1100000000011"},
		"none":    {optim.Select(layout, func(tensor.Range) bool { return false }), "0000000000000"},
	} {
		for kind, o := range map[string]optim.Optimizer{
			"sgd":   &optim.SGD{WeightDecay: 0.5, Decayed: c.ranges},
			"adamw": &optim.AdamW{WeightDecay: 0.5, Decayed: c.ranges},
			"lion":  &optim.Lion{WeightDecay: 0.5, Decayed: c.ranges},
		} {
			grad, x, got := make(tensor.Vector, layout.Len()), make(tensor.Vector, layout.Len()), ""
			for i := range x {
				x[i] = 2
			}
			o.Delta(grad, x, 1)
			for _, step := range grad {
				got += fmt.Sprint(-step + 0) // not -0
			}
			if got != c.want {
				t.Errorf("%s, %s: the steps are %s, want %s", name, kind, got, c.want)
			}
			if err := o.(optim.Validator).Validate(layout); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

// TestRangesChangeNoBit of what they do not concern: a step by ranges is the step of all, with
// decay where they are.
func TestRangesChangeNoBit(t *testing.T) {
	const n = 3000
	layout := layoutOf(t, tensor.Spec{Name: "a", Shape: []int{7, 100}}, tensor.Spec{Name: "b", Shape: []int{301}, Kind: tensor.Bias},
		tensor.Spec{Name: "c", Shape: []int{1999, 1}})
	of := func(decayed optim.Ranges, decay float64) []optim.Optimizer {
		return []optim.Optimizer{
			&optim.SGD{Momentum: 0.9, WeightDecay: decay, Decayed: decayed},
			&optim.AdamW{WeightDecay: decay, Decayed: decayed}, &optim.Lion{WeightDecay: decay, Decayed: decayed},
		}
	}
	parts, all, none := of(optim.Select(layout, optim.Weights), 0.1), of(optim.Ranges{}, 0.1), of(optim.Ranges{}, 0)
	step := func(o optim.Optimizer) tensor.Vector {
		grad, x := make(tensor.Vector, n), make(tensor.Vector, n)
		for i := range grad {
			grad[i], x[i] = float32(i%17)-8, float32(i%13)-6
		}
		o.Delta(grad, x, 0.01)
		return grad
	}
	for i := range parts {
		for range 3 {
			got, with, without := step(parts[i]), step(all[i]), step(none[i])
			for j := range got {
				want := with[j]
				if j >= 700 && j < 1001 {
					want = without[j]
				}
				if got[j] != want {
					t.Fatalf("%T: step %d is %g, want %g", parts[i], j, got[j], want)
				}
			}
		}
	}
}

// TestClip: a gradient that is longer than the bound is as long as that before anything is
// made of it, and one that is shorter is left as it is.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		clip float64
		want tensor.Vector
	}{
		{0, tensor.Vector{-3, -4}}, {1, tensor.Vector{-0.6, -0.8}}, {5.1, tensor.Vector{-3, -4}},
	} {
		grad := tensor.Vector{3, 4}
		(&optim.SGD{Clip: c.clip}).Delta(grad, make(tensor.Vector, 2), 1)
		if math.Sqrt(tensor.SquaredDistance(grad, c.want)) > 1e-6 {
			t.Errorf("clip %g: the step is %v, want %v", c.clip, grad, c.want)
		}
	}
	grad := tensor.Vector{float32(math.Inf(1)), 4}
	if (&optim.SGD{Clip: 1}).Delta(grad, make(tensor.Vector, 2), 1); tensor.Finite(grad) {
		t.Errorf("an infinite gradient makes the step %v", grad)
	}
}

// TestValidateTellsAllFaultsAtOnce of each optimizer, and none of those that are usual.
func TestValidateTellsAllFaultsAtOnce(t *testing.T) {
	layout, other := layoutOf(t, tensor.Spec{Name: "a", Shape: []int{2}}), layoutOf(t, tensor.Spec{Name: "b", Shape: []int{2}})
	foreign := optim.Select(other, optim.Weights)
	for _, c := range []struct {
		optimizer optim.Validator
		want      []string
	}{
		{&optim.SGD{}, nil},
		{&optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 1e-4, Clip: 1, Decayed: optim.Select(layout, optim.Weights)}, nil},
		{&optim.AdamW{}, nil},
		{&optim.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6, WeightDecay: 0.1}, nil},
		{&optim.Lion{}, nil},
		{&optim.SGD{Momentum: 1, WeightDecay: -1, Clip: math.NaN(), Decayed: foreign}, []string{"Momentum", "WeightDecay", "Clip", "another layout"}},
		{&optim.AdamW{Beta1: -1, Beta2: 1, Epsilon: 1e-50, WeightDecay: math.Inf(1), Clip: -1, Decayed: foreign}, []string{"Beta1", "Beta2", "Epsilon", "WeightDecay", "Clip", "another layout"}},
		{&optim.Lion{Beta1: 2, Beta2: math.NaN(), WeightDecay: -1, Clip: -1, Decayed: foreign}, []string{"Beta1", "Beta2", "WeightDecay", "Clip", "another layout"}},
	} {
		err := c.optimizer.Validate(layout)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%+v: error %v", c.optimizer, err)
		}
		for _, fault := range c.want {
			if !strings.Contains(fmt.Sprint(err), fault) {
				t.Errorf("%T: the error says nothing of %s:\n%v", c.optimizer, fault, err)
			}
		}
	}
	if err := (&optim.SGD{Decayed: foreign}).Validate(nil); err != nil {
		t.Errorf("for any layout: %v", err)
	}
}

// all are the optimizers with everything set, for a layout of n values.
func all(t testing.TB, n int) map[string]optim.Optimizer {
	half := n / 2
	layout := layoutOf(t, tensor.Spec{Name: "weight", Shape: []int{half, 1}}, tensor.Spec{Name: "bias", Shape: []int{n - half}, Kind: tensor.Bias})
	decayed := optim.Select(layout, optim.Weights)
	return map[string]optim.Optimizer{
		"sgd":      &optim.SGD{WeightDecay: 0.1, Decayed: decayed, Clip: 1},
		"nesterov": &optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.1, Decayed: decayed, Clip: 1},
		"adamw":    &optim.AdamW{WeightDecay: 0.1, Decayed: decayed, Clip: 1},
		"lion":     &optim.Lion{WeightDecay: 0.1, Decayed: decayed, Clip: 1},
	}
}

// TestOptimizersAllocateNothing once they have what they remember.
func TestOptimizersAllocateNothing(t *testing.T) {
	const n = 1000
	grad, x := make(tensor.Vector, n), make(tensor.Vector, n)
	for name, o := range all(t, n) {
		o.Delta(grad, x, 0.1)
		if allocated := testing.AllocsPerRun(20, func() { o.Delta(grad, x, 0.1) }); allocated != 0 {
			t.Errorf("%s: %g allocations a step", name, allocated)
		}
	}
}

func BenchmarkDelta(b *testing.B) {
	const n = 1 << 20
	for name, o := range all(b, n) {
		b.Run(name, func(b *testing.B) {
			grad, from, x := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
			for i := range from {
				from[i], x[i] = float32(i%7)-3, 1
			}
			o.Delta(grad, x, 1e-3) // which makes room for what it remembers
			b.SetBytes(n * tensor.ValueSize)
			b.ReportAllocs()
			for b.Loop() {
				copy(grad, from) // or it would shrink to denormal numbers
				o.Delta(grad, x, 1e-3)
			}
		})
		b.Run(name+", no gradient any more", func(b *testing.B) {
			grad, x := make(tensor.Vector, n), slices.Repeat(tensor.Vector{1}, n)
			o.Delta(slices.Clone(x), x, 1e-3)
			for range 1500 { // until nothing is remembered
				clear(grad)
				o.Delta(grad, x, 1e-3)
			}
			b.SetBytes(n * tensor.ValueSize)
			for b.Loop() {
				clear(grad)
				o.Delta(grad, x, 1e-3)
			}
		})
	}
}
