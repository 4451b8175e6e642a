package nets

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestDeepModelsHaveTheirParameters: as many as torchvision's models of ten classes learn, and He et al. say of theirs;
// and a picture of 32×32 pixels becomes as small.
func TestDeepModelsHaveTheirParameters(t *testing.T) {
	for name, want := range map[string]struct{ parameters, pixels int }{
		"mobilenet_v2": {2_236_682, 1}, "resnet18": {11_173_962, 16}, "resnet20": {272_474, 64}, "resnet110": {1_730_714, 64},
		"alexnet": {23_272_266, 4}, "vgg11_bn": {9_231_114, 1}, "vgg16_bn": {14_728_266, 1}, "vgg19_bn": {20_040_522, 1},
	} {
		model, err := ByName(name, colours, 10)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range model.Layout().Ranges() {
			if r.Kind != tensor.Statistic {
				n += r.Len
			}
		}
		pixels := 0
		for _, p := range model.(*network).model.Parts() {
			if len(p.Out) == 3 && p.Out.Width() > 1 && !strings.HasSuffix(p.Name, "GlobalAvgPool") {
				pixels = p.Out.Rows()
			}
		}
		if n != want.parameters || pixels != want.pixels {
			t.Errorf("%s: %d parameters and %d pixels in the end, want %v", name, n, pixels, want)
		}
	}
}

// TestDeepModelsLearn: the loss of a batch falls within a few steps, which allocate nothing. The pictures are as small
// as a model takes, and VGG's longer forms are the same code.
func TestDeepModelsLearn(t *testing.T) {
	needsKernels(t)
	for name, side := range map[string]int{"mobilenet_v2": 16, "resnet18": 8, "resnet20": 8, "resnet110": 8, "alexnet": 16, "vgg11_bn": 32} {
		t.Run(name, func(t *testing.T) {
			const classes = 4
			shape := dataset.Shape{Height: side, Width: side, Channels: 3}
			model, err := ByName(name, shape, classes)
			switch name { // losses differ more by what Dropout drops than by a few steps
			case "alexnet":
				model, err = newDeep(shape, classes, alexNet(shape, classes, 0))
			case "mobilenet_v2":
				model, err = newDeep(shape, classes, mobileNetV2(shape, classes, 0))
			}
			if err != nil {
				t.Fatal(err)
			}
			batch := randomBatch(seeded.Rand(1, seeded.Order, 0), 4, shape.Values(), classes)
			n := model.Layout().Len()
			x, grad, velocity := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
			model.Init(1, x)
			first, loss := model.Gradient(x, batch, grad), 0.0
			allocated := testing.AllocsPerRun(1, func() { // runs it twice
				tensor.MomentumRates{Rate: 0.002, Momentum: 0.5}.Delta(grad, velocity, grad, x)
				tensor.Add(x, grad)
				loss = model.Gradient(x, batch, grad)
			})
			if allocated > 0 {
				t.Errorf("%v allocations a step", allocated)
			}
			if t.Logf("loss from %.3f to %.3f", first, loss); !(loss < first) {
				t.Error("nothing was learnt")
			}
		})
	}
}

// TestMobileNetV2InStages: cut between all its parts, blocks with their shortcuts among them, it is the same model to the
// bit.
func TestMobileNetV2InStages(t *testing.T) {
	shape := dataset.Shape{Height: 16, Width: 16, Channels: 3}
	whole, err := nn.Sequential(mobileNetV2(shape, 5, mobileDropout)...).Build(shape.Height, shape.Width, shape.Channels)
	if err != nil {
		t.Fatal(err)
	}
	const examples = 3
	rng := rand.New(rand.NewPCG(1, 1))
	x, params := make(tensor.Vector, examples*shape.Values()), whole.Init(1).Vector()
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	through := func(stages []*nn.Model) (out, grad tensor.Vector) {
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
	cuts := make([]int, len(whole.Parts())-1)
	for i := range cuts {
		cuts[i] = i + 1
	}
	stages, err := whole.Stages(cuts...)
	if err != nil || len(stages) < 20 {
		t.Fatalf("%d stages, %v", len(stages), err)
	}
	wantOut, want := through([]*nn.Model{whole})
	out, grad := through(stages)
	if !slices.Equal(out, wantOut) || !slices.Equal(grad, want) || !tensor.Finite(grad) {
		t.Errorf("outputs %v, whole %v; gradients %v apart", out, wantOut, math.Sqrt(tensor.SquaredDistance(grad, want)))
	}
	if name := whole.Parts()[3].Name; name != "features.1.conv.0.0.Conv2d(32, 32, 3)" {
		t.Errorf("part 3 is %s", name)
	}
}
