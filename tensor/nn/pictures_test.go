package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// pictureLayers are layers on pictures of 4 channels, behind a convolution, of so many
// pixels.
func pictureLayers(pixels int) map[string][]nn.Layer {
	flat := 4 * pixels
	return map[string][]nn.Layer{
		"by itself":            {},
		"3×3":                  {nn.Conv2d(4, 5, 3, nn.Conv{Padding: 1})},
		"3×3, stride 2":        {nn.Conv2d(4, 20, 3, nn.Conv{Padding: 1, Stride: 2})},
		"3×3, no padding":      {nn.Conv2d(4, 3, 3, nn.Conv{NoBias: true})},
		"1×1":                  {nn.Conv2d(4, 6, 1, nn.Conv{})},
		"1×1, stride 2":        {nn.Conv2d(4, 6, 1, nn.Conv{Stride: 2})},
		"5×5":                  {nn.Conv2d(4, 2, 5, nn.Conv{Padding: 2, Stride: 3})},
		"depthwise":            {nn.Conv2d(4, 4, 3, nn.Conv{Padding: 1, Groups: 4})},
		"depthwise 5×5":        {nn.Conv2d(4, 8, 5, nn.Conv{Padding: 3, Groups: 4})},
		"two groups":           {nn.Conv2d(4, 6, 3, nn.Conv{Padding: 1, Groups: 2})},
		"rectified":            {nn.Conv2d(4, 5, 3, nn.Conv{Padding: 1}), nn.ReLU()},
		"rectified, no bias":   {nn.Conv2d(4, 5, 3, nn.Conv{Padding: 1, NoBias: true}), nn.ReLU()},
		"rectified and pooled": {nn.Conv2d(4, 5, 3, nn.Conv{Padding: 1}), nn.ReLU(), nn.MaxPool2d(2)},
		"pooled and rectified": {nn.Conv2d(4, 5, 3, nn.Conv{Padding: 1}), nn.MaxPool2d(2), nn.ReLU()},
		"pools":                {nn.MaxPool2d(2), nn.AvgPool2d(2)},
		"pools of 3":           {nn.MaxPool2d(3)},
		"mean":                 {nn.GlobalAvgPool(), nn.Flatten(), nn.Linear(4, 3)},
		"flat, few outputs":    {nn.Flatten(), nn.WithStart(nn.Linear(flat, 3), nn.Normal(0.2)), nn.ReLU(), nn.Linear(3, 2)},
		"flat, many outputs":   {nn.Flatten(), nn.Linear(flat, 65), nn.ReLU()},
		"flat":                 {nn.Flatten(), nn.Tanh()},
		"group norm":           {nn.GroupNorm(2, 4)},
		"group norm, ReLU":     {nn.GroupNorm(2, 4), nn.ReLU()},
		"batch norm":           {nn.BatchNorm(4), nn.Tanh()},
		"residual":             {nn.Residual(nn.Conv2d(4, 4, 3, nn.Conv{Padding: 1}), nn.GroupNorm(1, 4), nn.ReLU())},
		"side by side":         {nn.Concat(nn.Conv2d(4, 2, 1, nn.Conv{}), nn.Conv2d(4, 3, 3, nn.Conv{Padding: 1}))},
	}
}

func TestGradientsOfPictureLayers(t *testing.T) {
	for name := range pictureLayers(0) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(len(name)), 5))
			for seed := range 4 {
				in := []int{4 + rng.IntN(4), 4 + rng.IntN(5), 1 + rng.IntN(3)}
				layers := pictureLayers(in[0] * in[1])[name]
				m := built(t, in, append([]nn.Layer{nn.Conv2d(in[2], 4, 3, nn.Conv{Padding: 1})}, layers...)...)
				if name == "batch norm" {
					batchNormAgainstDifferences(t, m, in)
					continue
				}
				againstDifferences(t, m, 3, uint64(seed))
			}
		})
	}
}

// batchNormAgainstDifferences: Loss predicts with the running statistics, so the loss is
// taken from Gradient.
func batchNormAgainstDifferences(t *testing.T, m *nn.Model, in []int) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := normal(rng, 6*m.In().Len()), normal(rng, 6*m.Out().Len())
	trainer := m.Trainer(6, nn.MeanSquare())
	params, grad, other := m.Init(1).Vector(), make(tensor.Vector, m.Layout().Len()), make(tensor.Vector, m.Layout().Len())
	trainer.Gradient(params, grad, x, y)
	for _, r := range m.Layout().Ranges() {
		if r.Kind == tensor.Statistic {
			continue
		}
		i := r.Offset + rng.IntN(r.Len)
		at := params[i]
		params[i] = at + 3e-3
		up := trainer.Gradient(params, other, x, y)
		params[i] = at - 3e-3
		down := trainer.Gradient(params, other, x, y)
		params[i] = at
		if want := (up - down) / 6e-3; math.Abs(want-float64(grad[i])) > 1e-3 {
			t.Errorf("%s[%d]: gradient %v, by differences %v", r.Name, i-r.Offset, grad[i], want)
		}
	}
}

// TestPicturesOnManyGoroutines: one result, and no allocation.
func TestPicturesOnManyGoroutines(t *testing.T) {
	for name, layers := range pictureLayers(36) {
		t.Run(name, func(t *testing.T) {
			m := built(t, []int{6, 6, 2}, append([]nn.Layer{nn.Conv2d(2, 4, 3, nn.Conv{Padding: 1})}, layers...)...)
			rng := rand.New(rand.NewPCG(1, 2))
			x, y := normal(rng, 300*m.In().Len()), normal(rng, 300*m.Out().Len())
			params := m.Init(1).Vector()
			var want tensor.Vector
			for _, goroutines := range []int{1, 3} {
				trainer, grad := m.Trainer(300, nn.MeanSquare()), make(tensor.Vector, len(params))
				trainer.Split(goroutines)
				trainer.Gradient(params, grad, x, y)
				if want == nil {
					want = slices.Clone(grad)
					if n := testing.AllocsPerRun(3, func() { trainer.Gradient(params, grad, x, y) }); n != 0 {
						t.Errorf("%v allocations", n)
					}
				} else if !slices.Equal(grad, want) {
					t.Errorf("%d goroutines: another gradient", goroutines)
				}
			}
		})
	}
}

// TestConvolutionIsItsDefinition: sums over the kernel's pixels, in torch's order of
// weights, whichever way it is computed.
func TestConvolutionIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		groups := draw("groups", 1, 3)
		in, out, kernel := groups*draw("in", 1, 4), groups*draw("out", 1, 4), draw("kernel", 1, 4)
		c := nn.Conv{Stride: draw("stride", 1, 3), Padding: draw("padding", 0, 2), Groups: groups, NoBias: rapid.Bool().Draw(t, "no bias")}
		height, width := draw("height", kernel, 9), draw("width", kernel, 9)
		m, err := nn.Sequential(nn.Conv2d(in, out, kernel, c)).Build(height, width, in)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		params, x := m.Init(1), normal(rng, m.In().Len())
		w, _ := params.Tensor("0.weight")
		bias, _ := params.Tensor("0.bias")
		y := make(tensor.Vector, m.Out().Len())
		m.Predict(params.Vector(), y, x)
		down, across := m.Out()[0], m.Out()[1]
		for i := range down {
			for j := range across {
				for o := range out {
					sum := 0.0
					if bias != nil {
						sum = float64(bias[o])
					}
					for ci := range in / groups {
						for ky := range kernel {
							for kx := range kernel {
								py, px := i*c.Stride+ky-c.Padding, j*c.Stride+kx-c.Padding
								if py >= 0 && py < height && px >= 0 && px < width {
									channel := o/(out/groups)*(in/groups) + ci
									sum += float64(w[((o*(in/groups)+ci)*kernel+ky)*kernel+kx]) * float64(x[(py*width+px)*in+channel])
								}
							}
						}
					}
					if got := float64(y[(i*across+j)*out+o]); math.Abs(got-sum) > 1e-5 {
						t.Fatalf("pixel %d, %d of channel %d: %v, want %v", i, j, o, got, sum)
					}
				}
			}
		}
	})
}

// TestFusedLayersAreTheirParts: a layer between, which does nothing, keeps them apart.
func TestFusedLayersAreTheirParts(t *testing.T) {
	nothing := nn.Dropout(0)
	for name, layers := range map[string][]nn.Layer{
		"convolution": {nn.Conv2d(3, 8, 3, nn.Conv{Padding: 1}), nn.ReLU(), nn.MaxPool2d(2)},
		"linear":      {nn.Linear(3, 8), nn.ReLU()},
		"flat":        {nn.Flatten(), nn.WithStart(nn.Linear(3*36, 8), nn.Normal(1)), nn.ReLU()},
		"started":     {nn.WithStart(nn.Linear(3, 8), nn.Normal(1)), nn.ReLU()},
		"norm":        {nn.GroupNorm(1, 3), nn.ReLU()},
	} {
		t.Run(name, func(t *testing.T) {
			apart := []nn.Layer{layers[0]}
			for _, l := range layers[1:] {
				apart = append(apart, nothing, l)
			}
			a, b := built(t, []int{6, 6, 3}, layers...), built(t, []int{6, 6, 3}, apart...)
			x, _ := batch(a, 4, 9)
			params := a.Init(1).Vector()
			one, two := make(tensor.Vector, 4*a.Out().Len()), make(tensor.Vector, 4*b.Out().Len())
			a.Predict(params, one, x)
			b.Predict(params, two, x)
			// Turned weights are added up in another order.
			if off := tensor.SquaredDistance(one, two); off > 1e-10 || off != 0 && name != "flat" {
				t.Errorf("outputs %v apart", math.Sqrt(off))
			}
		})
	}
}

func TestFlattenIsInTorchsOrder(t *testing.T) {
	m := built(t, []int{2, 1, 3}, nn.Flatten())
	y := make(tensor.Vector, 6)
	m.Predict(nil, y, tensor.Vector{1, 2, 3, 4, 5, 6})
	if !slices.Equal(y, tensor.Vector{1, 4, 2, 5, 3, 6}) {
		t.Error(y)
	}
	var names []string
	for _, r := range built(t, []int{2, 1, 3}, nn.ReLU(), nn.Flatten(), nn.Linear(6, 2), nn.ReLU()).Layout().Ranges() {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"2.weight", "2.bias"}) {
		t.Errorf("the Linear behind it has %q", names)
	}
}

// TestBatchNormCountsAsItLearns: its statistics change by what the gradient says, and are
// what it predicts with.
func TestBatchNormCountsAsItLearns(t *testing.T) {
	m := built(t, []int{2}, nn.BatchNorm(2))
	var names []string
	for _, r := range m.Layout().Ranges() {
		names = append(names, fmt.Sprintf("%s:%v,%v", r.Name, r.Kind, r.Sharing))
	}
	if got := strings.Join(names, " "); got != "0.weight:norm,shared 0.bias:norm,shared 0.running_mean:statistic,local 0.running_var:statistic,local 0.num_batches_tracked:statistic,local" {
		t.Error(got)
	}
	params := m.Init(1)
	x := tensor.Vector{1, 10, 3, 10, 5, 40}
	grad := make(tensor.Vector, m.Layout().Len())
	m.Trainer(3, nn.MeanSquare()).Gradient(params.Vector(), grad, x, make(tensor.Vector, 6))
	for i, want := range []float64{0.1 * 3, 0.1 * 20, 0.1 * (4 - 1), 0.1 * (300 - 1), 1} {
		if got := float64(grad[4+i]); math.Abs(got-want) > 1e-4 {
			t.Errorf("statistic %d changes by %v, want %v", i, got, want)
		}
	}
	mean, _ := params.Tensor("0.running_mean")
	variance, _ := params.Tensor("0.running_var")
	copy(mean, tensor.Vector{1, 2})
	copy(variance, tensor.Vector{4, 9})
	y := make(tensor.Vector, 2)
	m.Predict(params.Vector(), y, tensor.Vector{3, 8})
	if math.Abs(float64(y[0])-1) > 1e-4 || math.Abs(float64(y[1])-2) > 1e-4 {
		t.Errorf("%v, want 1 and 2", y)
	}
	if err := rejected(nn.Checkpoint(nn.BatchNorm(2)), 2); !strings.Contains(err, "twice") {
		t.Error(err)
	}
}

func rejected(l nn.Layer, in ...int) string {
	_, err := nn.Sequential(l).Build(in...)
	return fmt.Sprint(err)
}

func TestPictureLayersThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		layer nn.Layer
		want  string
	}{
		{nn.Conv2d(4, 8, 3, nn.Conv{}), "layer 0 (Conv2d(4, 8, 3)) on examples of shape [5 6 3]: want pictures [height width 4]"},
		{nn.Conv2d(3, 8, 7, nn.Conv{}), "smaller than the kernel"},
		{nn.Conv2d(3, 8, 3, nn.Conv{Groups: 2}), "groups of the same size"},
		{nn.Conv2d(0, 8, 3, nn.Conv{}), "at least one channel"},
		{nn.Sequential(nn.Conv2d(3, 8, 5, nn.Conv{}), nn.MaxPool2d(2)), "smaller than the pool"},
		{nn.MaxPool2d(7), "a size of 1 to that of the pictures"},
		{nn.AvgPool2d(-1), "a size of 1 to that of the pictures"},
		{nn.AvgPool2d(0), "a size of 1 to that of the pictures"}, // is not all pixels
		{nn.GroupNorm(2, 3), "groups of the same size"},
		{nn.GroupNorm(1, 4), "want pictures"},
		{nn.BatchNorm(4), "want 4 channels, have 3"},
	} {
		if got := rejected(c.layer, 5, 6, 3); !strings.Contains(got, c.want) {
			t.Errorf("%s, want an error with %q", got, c.want)
		}
	}
}
