package nn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// torchPython names the variable with a python that has torch.
const torchPython = "MURMURATION_TORCH"

// torchCase is a model here and as torch has it.
type torchCase struct {
	name, torch string
	in          []int
	layers      []nn.Layer
	ids         int // inputs are whole numbers below it
}

func torchCases() []torchCase {
	block := []nn.Layer{nn.Embedding(256, 16), nn.Positions(12, 16),
		nn.Residual(nn.LayerNorm(16), nn.CausalSelfAttention(16, 4, false)),
		nn.Residual(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)),
		nn.LayerNorm(16), nn.LinearNoBias(16, 256)}
	return []torchCase{
		{"mlp", "nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4))", []int{20}, []nn.Layer{nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4)}, 0},
		{"cnn", "nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32*3*2, 5))",
			[]int{13, 10, 3}, []nn.Layer{nn.Conv2d(3, 16, 3, nn.Conv{Padding: 1}), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, nn.Conv{Padding: 1}), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32*3*2, 5)}, 0},
		{"separable", "nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2, bias=False), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.Conv2d(8, 12, 1), nn.GroupNorm(3, 12), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4))",
			[]int{9, 8, 3}, []nn.Layer{nn.Conv2d(3, 8, 3, nn.Conv{Padding: 1, Stride: 2, NoBias: true}), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 3, nn.Conv{Padding: 1, Groups: 8, NoBias: true}), nn.Conv2d(8, 12, 1, nn.Conv{}), nn.GroupNorm(3, 12), nn.GlobalAvgPool(), nn.Flatten(), nn.Linear(12, 4)}, 0},
		{"kernels", "nn.Sequential(nn.Conv2d(4, 6, 5, padding=2, stride=3), nn.Tanh(), nn.Conv2d(6, 4, 2, groups=2), nn.AvgPool2d(2), nn.Sigmoid())",
			[]int{14, 13, 4}, []nn.Layer{nn.Conv2d(4, 6, 5, nn.Conv{Padding: 2, Stride: 3}), nn.Tanh(), nn.Conv2d(6, 4, 2, nn.Conv{Groups: 2}), nn.AvgPool2d(2), nn.Sigmoid()}, 0},
		{"batchnorm", "nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(3), nn.Flatten(), nn.Linear(8*2*2, 6, bias=False), nn.BatchNorm1d(6))",
			[]int{7, 6, 3}, []nn.Layer{nn.Conv2d(3, 8, 3, nn.Conv{Padding: 1, NoBias: true}), nn.BatchNorm(8), nn.SiLU(), nn.MaxPool2d(3), nn.Flatten(), nn.LinearNoBias(8*2*2, 6), nn.BatchNorm(6)}, 0},
		{"residual", "nn.Sequential(nn.Linear(6, 8), Residual(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()), Concat(nn.Linear(8, 3), nn.Tanh()))",
			[]int{5, 6}, []nn.Layer{nn.Linear(6, 8), nn.Residual(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()), nn.Concat(nn.Linear(8, 3), nn.Tanh())}, 0},
		{"rectified", "nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU6(), ResidualVia(nn.Conv2d(4, 6, 1, stride=2), nn.Conv2d(4, 6, 3, padding=1, stride=2), nn.BatchNorm2d(6)), nn.ReLU6())",
			[]int{6, 8, 3}, []nn.Layer{nn.Conv2d(3, 4, 3, nn.Conv{Padding: 1}), nn.ReLU6(), nn.ResidualVia(nn.Conv2d(4, 6, 1, nn.Conv{Stride: 2}), nn.Conv2d(4, 6, 3, nn.Conv{Padding: 1, Stride: 2}), nn.BatchNorm(6)), nn.ReLU6()}, 0},
		{"gru", "nn.Sequential(GRU(5, 7), GRU(7, 3))", []int{9, 5}, []nn.Layer{nn.GRU(5, 7), nn.GRU(7, 3)}, 0},
		{"attention", "nn.Sequential(nn.Linear(6, 8), CausalSelfAttention(8, 2, True))", []int{70, 6}, []nn.Layer{nn.Linear(6, 8), nn.CausalSelfAttention(8, 2, true)}, 0},
		{"embeddings", "nn.Sequential(Tokens(9, 5), nn.Linear(5, 3))", []int{4}, []nn.Layer{nn.Embedding(9, 5), nn.Linear(5, 3)}, 9},
		{"gpt", "gpt(layers=1, width=16, heads=4, context=12)", []int{12}, block, 256},
	}
}

// TestLayersAgainstTorch: names, outputs and gradients are torch's, and weights go both
// ways.
func TestLayersAgainstTorch(t *testing.T) {
	python := os.Getenv(torchPython)
	if python == "" {
		t.Skipf("%s names no python that has torch", torchPython)
	}
	dir := t.TempDir()
	for _, c := range torchCases() {
		c.write(t, filepath.Join(dir, c.name))
	}
	script, err := filepath.Abs("../../docs/torch/layers.py")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, script, dir).CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	for _, c := range torchCases() {
		c.back(t, filepath.Join(dir, c.name))
	}
}

const torchExamples = 6

// batch is the same examples each time.
func (c torchCase) batch(m *nn.Model) tensor.Vector {
	rng := rand.New(rand.NewPCG(7, 7))
	x := normal(rng, torchExamples*m.In().Len())
	for i := range x {
		if c.ids > 0 {
			x[i] = float32(rng.IntN(c.ids))
		}
	}
	return x
}

func (c torchCase) write(t *testing.T, dir string) {
	t.Helper()
	m := built(t, c.in, c.layers...)
	rng := rand.New(rand.NewPCG(8, 8))
	params, x := m.Init(1), c.batch(m)
	y, out, grad := normal(rng, torchExamples*m.Out().Len()), make(tensor.Vector, torchExamples*m.Out().Len()), make(tensor.Vector, m.Layout().Len())
	loss := m.Trainer(torchExamples, nn.MeanSquare()).Gradient(params.Vector(), grad, x, y)
	specs := []tensor.Spec{{Name: "x", Shape: batchOf(m.In())}, {Name: "y", Shape: batchOf(m.Out())}, {Name: "out", Shape: batchOf(m.Out())}, {Name: "loss", Shape: []int{1}}}
	for _, r := range m.Layout().Ranges() {
		specs = append(specs, tensor.Spec{Name: "grad." + r.Name, Shape: r.Shape})
	}
	m.Predict(params.Vector(), out, x)
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		t.Fatal(err)
	}
	data := append(append(append(append(append(tensor.Vector{}, x...), y...), out...), float32(loss)), grad...)
	values, err := tensor.WrapParams(layout, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*tensor.Params{"weights": params, "data": values} {
		var file bytes.Buffer
		if err := p.WriteSafetensors(&file, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".safetensors"), file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]string{"torch": c.torch})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "case.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func batchOf(s nn.Shape) []int { return append([]int{torchExamples}, s...) }

// back compares what torch makes of its weights with what they are here.
func (c torchCase) back(t *testing.T, dir string) {
	t.Helper()
	m := built(t, c.in, c.layers...)
	params := tensor.NewParams(m.Layout())
	layout, err := tensor.NewLayout(tensor.Spec{Name: "out", Shape: batchOf(m.Out())})
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.NewParams(layout)
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
	got := make(tensor.Vector, layout.Len())
	m.Predict(params.Vector(), got, c.batch(m))
	most := float64(max(tensor.MaxAbs(want.Vector()), 1e-3))
	if off := math.Sqrt(tensor.SquaredDistance(got, want.Vector())/float64(len(got))) / most; !(off < 1e-4) {
		t.Errorf("%s: outputs by torch's weights are %v of the largest apart", c.name, fmt.Sprintf("%.2e", off))
	}
}
