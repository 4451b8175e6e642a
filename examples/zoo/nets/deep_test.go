package nets

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
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
