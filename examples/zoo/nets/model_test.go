package nets

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
	"github.com/seed-97356399/murmuration/tensor"
)

// All peers of a run start from these bytes, whatever their processor.
func TestInitIsGolden(t *testing.T) {
	var out strings.Builder
	for _, name := range small() {
		model := mustModel(t, name)
		x := make(tensor.Vector, model.Layout().Len())
		for seed := range uint64(2) {
			for i := range x {
				x[i] = 77 // must be overwritten
			}
			model.Init(seed, x)
			fmt.Fprintf(&out, "%s, seed %d: %d parameters %s, first %v\n", name, seed, len(x), ztest.Sum32(ztest.BytesOf(x)), x[:2])
		}
	}
	ztest.Golden(t, "init.txt", out.String())
}

// Weights and biases fill their range evenly: the variance is that of He et al.
func TestInitVariance(t *testing.T) {
	model, err := NewMLP(400, 300, 10)
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(model.Layout())
	model.Init(1, params.Vector())
	for name, want := range map[string]float64{"0.weight": 2.0 / 400, "2.weight": 1.0 / 300} {
		w, ok := params.Tensor(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		got := tensor.SumSquares(w) / float64(len(w))
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s has variance %v, want %v", name, got, want)
		}
	}
}

// A step allocates nothing once its room is made, whether a batch is one pass or
// several.
func TestGradientAllocatesNothing(t *testing.T) {
	for _, name := range ofPictures {
		model := mustModel(t, name)
		x := make(tensor.Vector, model.Layout().Len())
		grad := make(tensor.Vector, len(x))
		model.Init(1, x)
		rng := seeded.Rand(1, seeded.Order, 0)
		large, small := randomBatch(rng, 19, dataset.Inputs, dataset.Classes), randomBatch(rng, 5, dataset.Inputs, dataset.Classes)
		model.Gradient(x, large, grad)
		if n := testing.AllocsPerRun(5, func() { // of which a stray one of the runtime is none
			model.Gradient(x, small, grad)
			model.Gradient(x, large, grad)
		}); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

// Evaluate sees every picture once, the last incomplete batch too.
func TestEvaluate(t *testing.T) {
	set, err := dataset.HeldOutGlyphs(2*glance + 3)
	if err != nil {
		t.Fatal(err)
	}
	model := mustModel(t, "softmax")
	x := make(tensor.Vector, model.Layout().Len())
	model.Init(3, x)
	var all dataset.Batch
	set.Fill(&all, 0, set.Len())
	correct := 0
	for i, label := range all.Labels {
		var scores [dataset.Classes]float64
		best := 0
		for c := range scores {
			scores[c] = float64(x[dataset.Inputs*dataset.Classes+c])
			for j, v := range all.X[i*dataset.Inputs : (i+1)*dataset.Inputs] {
				scores[c] += float64(v) * float64(x[c*dataset.Inputs+j])
			}
			if scores[c] > scores[best] {
				best = c
			}
		}
		if best == int(label) {
			correct++
		}
	}
	wantLoss := model.Gradient(x, &all, make(tensor.Vector, len(x)))
	accuracy, loss := model.Evaluate(x, set)
	if want := float64(correct) / float64(set.Len()); accuracy != want || math.Abs(loss-wantLoss) > 1e-6 {
		t.Errorf("accuracy %v and loss %v, want %v and %v", accuracy, loss, want, wantLoss)
	}
	none := set.Subset(nil)
	if a, l := model.Evaluate(x, none); a != 0 || l != 0 {
		t.Errorf("of nothing: %v, %v", a, l)
	}
}

// Evaluate takes the parameters that it is given, not those of the step before, and
// has the loss of a batch of the whole set, but where it goes by running statistics.
func TestEvaluateAfterStep(t *testing.T) {
	for _, name := range small() {
		if name == "resnet-small" {
			continue
		}
		set := smallProblem(t, name).Subset(seeded.Identity(2*few + 3))
		var all dataset.Batch
		set.Fill(&all, 0, set.Len())
		model := modelFor(t, name, set)
		x, y, g := make(tensor.Vector, model.Layout().Len()), make(tensor.Vector, model.Layout().Len()), make(tensor.Vector, model.Layout().Len())
		model.Init(1, x)
		model.Init(2, y)
		want := model.Gradient(x, &all, g)
		other := model.Gradient(y, &all, g)
		if _, loss := model.Evaluate(x, set); math.Abs(loss-want) > 1e-6*want {
			t.Errorf("%s: loss %v, want %v; that of other parameters is %v", name, loss, want, other)
		}
	}
}

func TestModelsRefuse(t *testing.T) {
	if _, err := ByName("resnet", digits, dataset.Classes); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "mlp, softmax") {
		t.Errorf("unknown name: %v", err)
	}
	for _, sizes := range [][]int{nil, {3}, {3, 0}, {-1, 2}, {3, 257}, {1 << 21, 2}, {3, 0, 2}} {
		if _, err := NewMLP(sizes...); !errors.Is(err, ErrModel) {
			t.Errorf("sizes %v: %v", sizes, err)
		}
	}
	for _, name := range Names() {
		if _, err := ByName(name, digits, maxClasses+1); !errors.Is(err, ErrModel) {
			t.Errorf("%s with too many classes: %v", name, err)
		}
	}
	if _, err := ByName("resnet-small", dataset.Shape{Height: 7, Width: 9, Channels: 3}, 10); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "layer 6") {
		t.Errorf("resnet-small of 7 by 9 pixels: %v", err)
	}
	for _, name := range []string{"cnn", "mobilenet-small"} {
		for _, s := range []dataset.Shape{
			{Height: minSide - 1, Width: 9, Channels: 1}, {Height: 9, Width: minSide - 1, Channels: 1},
			{Height: 9, Width: 9}, {Height: -9, Width: 9, Channels: -1}, {Height: 1 << 10, Width: 1 << 10, Channels: 2},
			{Height: maxSide + 1, Width: 9, Channels: 1}, {Height: 4, Width: 4, Channels: 1 << 16},
		} {
			if _, err := ByName(name, s, 10); (err == nil) != (s.Channels == 1<<16) || err != nil && !errors.Is(err, ErrModel) {
				t.Errorf("%s of %v: %v", name, s, err)
			}
		}
	}
}

// Names, shapes and kinds are what checkpoints and codecs go by, in torch's order.
func TestLayoutsAreGolden(t *testing.T) {
	var out strings.Builder
	for _, name := range small() {
		fmt.Fprintf(&out, "%s: %v", name, mustModel(t, name).Layout())
	}
	for _, name := range deep() {
		model, err := ByName(name, colours, 10)
		if err != nil {
			t.Fatal(err)
		}
		l := model.Layout()
		fmt.Fprintf(&out, "%s: %d parameters in %d ranges from %s to %s, hash %x\n", name, l.Len(), l.Count(), l.At(0).Name, l.At(l.Count()-1).Name, l.Hash())
	}
	ztest.Golden(t, "layouts.txt", out.String())
}
