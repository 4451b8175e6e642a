package nets

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// torchPython names the variable with a python that has torch and torchvision.
const torchPython = "MURMURATION_TORCH"

// torchCase is a model of the zoo and what torch has in its place.
type torchCase struct {
	name, torch string
	model       *nn.Model
	examples    int
}

func torchCases(t *testing.T) []torchCase {
	t.Helper()
	s := colours
	pictures := func(layers []nn.Layer) *nn.Model {
		m, err := nn.Sequential(layers...).Build(s.Height, s.Width, s.Channels)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	gru, err := NewGRU(Sizes{Width: 16, Context: 12})
	if err != nil {
		t.Fatal(err)
	}
	return []torchCase{
		{"mobilenet_v2", "mobilenet_v2()", pictures(mobileNetV2(s, 10, 0)), 8},
		{"alexnet", "alexnet()", pictures(alexNet(s, 10, 0)), 4},
		{"vgg11_bn", "vgg('vgg11_bn')", pictures(vgg([5]int{1, 1, 2, 2, 2}, s, 10)), 4},
		{"vgg16_bn", "vgg('vgg16_bn')", pictures(vgg([5]int{2, 2, 3, 3, 3}, s, 10)), 4},
		{"vgg19_bn", "vgg('vgg19_bn')", pictures(vgg([5]int{2, 2, 4, 4, 4}, s, 10)), 4},
		{"resnet18", "resnet18(100)", pictures(deepResNet(s, 100, 64, 2, 2, 2, 2)), 4},
		{"resnet20", "cifar_resnet(3)", pictures(deepResNet(s, 10, 16, 3, 3, 3)), 4},
		{"resnet110", "cifar_resnet(18)", pictures(deepResNet(s, 10, 16, 18, 18, 18)), 4},
		{"gru", "nn.Sequential(Tokens(256, 16), GRU(16, 16), nn.Linear(16, 256))", gru.(*network).model, 6},
	}
}

// TestModelsAgainstTorch: names, outputs, losses, gradients and statistics are torchvision's, and weights go both ways.
func TestModelsAgainstTorch(t *testing.T) {
	python := os.Getenv(torchPython)
	if python == "" {
		t.Skipf("%s names no python that has torch and torchvision", torchPython)
	}
	dir, cases := t.TempDir(), torchCases(t)
	for _, c := range cases {
		c.write(t, filepath.Join(dir, c.name))
	}
	out, err := exec.Command(python, "../../../docs/torch/layers.py", dir).CombinedOutput()
	if t.Logf("\n%s", out); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		c.back(t, filepath.Join(dir, c.name))
	}
}

// batch is the same examples each time.
func (c torchCase) batch() tensor.Vector {
	rng := rand.New(rand.NewPCG(7, 7))
	x := make(tensor.Vector, c.examples*c.model.In().Len())
	for i := range x {
		if x[i] = float32(rng.NormFloat64()); c.name == GRU {
			x[i] = float32(rng.IntN(Vocabulary))
		}
	}
	return x
}

// of is the shape of a batch.
func (c torchCase) of(s nn.Shape) []int { return append([]int{c.examples}, s...) }

// write writes the weights and all that the model makes of them.
func (c torchCase) write(t *testing.T, dir string) {
	m, x, params := c.model, c.batch(), c.model.Init(1)
	for i := range m.Layout().Count() { // values that a ReLU sees are rarely so near 0 that rounding decides what it does
		if r := m.Layout().At(i); r.Kind == tensor.Norm && strings.HasSuffix(r.Name, "bias") {
			for j := range r.Len {
				params.Vector()[r.Offset+j] = 3
			}
		}
	}
	y, grad := make(tensor.Vector, c.examples*m.Out().Len()), make(tensor.Vector, m.Layout().Len())
	out := make(tensor.Vector, len(y))
	for i := range y {
		y[i] = float32(math.Sin(float64(i)))
	}
	m.Predict(params.Vector(), out, x)
	loss := m.Trainer(c.examples, nn.MeanSquare()).Gradient(params.Vector(), grad, x, y)
	specs := []tensor.Spec{{Name: "x", Shape: c.of(m.In())}, {Name: "y", Shape: c.of(m.Out())}, {Name: "out", Shape: c.of(m.Out())}, {Name: "loss", Shape: []int{1}}}
	for _, r := range m.Layout().Ranges() {
		specs = append(specs, tensor.Spec{Name: "grad." + r.Name, Shape: r.Shape})
	}
	data := paramsOf(t, specs...)
	at := 0
	for _, v := range []tensor.Vector{x, y, out, {float32(loss)}, grad} {
		at += copy(data.Vector()[at:], v)
	}
	text, err := json.Marshal(map[string]string{"torch": c.torch})
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "case.json"), text, 0o644)
	}
	for name, p := range map[string]*tensor.Params{"weights": params, "data": data} {
		var file *os.File
		if err == nil {
			file, err = os.Create(filepath.Join(dir, name+".safetensors"))
		}
		if err == nil {
			err = p.WriteSafetensors(file, nil)
			file.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func paramsOf(t *testing.T, specs ...tensor.Spec) *tensor.Params {
	t.Helper()
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		t.Fatal(err)
	}
	return tensor.NewParams(layout)
}

// back compares what torch makes of its weights with what they are here.
func (c torchCase) back(t *testing.T, dir string) {
	params, want := tensor.NewParams(c.model.Layout()), paramsOf(t, tensor.Spec{Name: "out", Shape: c.of(c.model.Out())})
	for name, p := range map[string]*tensor.Params{"back": params, "backout": want} {
		file, err := os.Open(filepath.Join(dir, name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.LoadSafetensors(file); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		file.Close()
	}
	got := make(tensor.Vector, len(want.Vector()))
	c.model.Predict(params.Vector(), got, c.batch())
	most := math.Max(float64(tensor.MaxAbs(want.Vector())), 1e-3)
	off := math.Sqrt(tensor.SquaredDistance(got, want.Vector())/float64(len(got))) / most
	if t.Logf("%s: outputs by torch's weights are %.1e of the largest apart", c.name, off); !(off < 1e-4) {
		t.Errorf("%s: too much", c.name)
	}
}
