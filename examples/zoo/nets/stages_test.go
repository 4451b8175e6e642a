package nets

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// through computes outputs and gradients of stages that follow each other, for a loss that is the same for all.
func through(params, x tensor.Vector, examples int, stages ...*nn.Model) (out, grad tensor.Vector) {
	grad = make(tensor.Vector, len(params))
	var flows []*nn.Flow
	at, from := x, 0
	for _, m := range stages {
		f := m.Flow(examples)
		at = f.Forward(params[from:from+m.Layout().Len()], at, 7)
		flows, from = append(flows, f), from+m.Layout().Len()
	}
	out, errors := slices.Clone(at), make(tensor.Vector, len(at))
	nn.MeanSquare().Gradient(errors, at, make(tensor.Vector, len(at)), 1)
	for i := len(stages) - 1; i >= 0; i-- {
		to := from
		from -= stages[i].Layout().Len()
		errors = flows[i].Backward(params[from:to], grad[from:to], errors, i > 0)
	}
	return out, grad
}

// TestStagesAreTheModel: cut anywhere, and everywhere at once, models are the same to the bit, forward and back.
func TestStagesAreTheModel(t *testing.T) {
	pictures := dataset.Shape{Height: 16, Width: 16, Channels: 3}
	gpt, err := GPTOf(Sizes{Layers: 2, Width: 16, Heads: 2, Context: 8})
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"mlp": 2, "cnn": 3, "mobilenet-small": 8, "resnet-small": 8, "mobilenet_v2": 20, GPT: 4} {
		t.Run(name, func(t *testing.T) {
			whole := gpt
			if name != GPT {
				m, err := ByName(name, pictures, 5)
				if err != nil {
					t.Fatal(err)
				}
				whole = Layers(m)
			}
			const examples = 3
			rng := rand.New(rand.NewPCG(1, 1))
			x, params := make(tensor.Vector, examples*whole.In().Len()), whole.Init(1).Vector()
			for i := range x {
				if x[i] = float32(rng.NormFloat64()); name == GPT {
					x[i] = float32(rng.IntN(dataset.Bytes))
				}
			}
			want, gradient := through(params, x, examples, whole)
			var all []int
			for i := 1; i < len(whole.Parts()); i++ {
				all = append(all, i)
			}
			if len(all)+1 < least {
				t.Fatalf("%d parts", len(all)+1)
			}
			cuts := [][]int{all}
			for _, i := range all {
				cuts = append(cuts, []int{i})
			}
			for _, at := range cuts {
				stages, err := whole.Stages(at...)
				if err != nil {
					t.Fatal(err)
				}
				if out, grad := through(params, x, examples, stages...); !tensor.Identical(out, want) || !tensor.Identical(grad, gradient) || !tensor.Finite(grad) {
					t.Errorf("cut at %v it is another model", at)
				}
			}
		})
	}
}
