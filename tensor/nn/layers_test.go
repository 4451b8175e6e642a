package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// sequenceLayers are layers on sequences of so many places with 8 values each, behind a
// Linear, so that the gradients over their inputs are held against differences too.
func sequenceLayers(context int) map[string][]nn.Layer {
	return map[string][]nn.Layer{
		"gelu":                {nn.GELU()},
		"silu":                {nn.SiLU()},
		"sigmoid":             {nn.Sigmoid()},
		"tanh":                {nn.Tanh()},
		"layernorm":           {nn.LayerNorm(8)},
		"positions":           {nn.Positions(context, 8)},
		"attention":           {nn.CausalSelfAttention(8, 2, true)},
		"attention, no bias":  {nn.CausalSelfAttention(8, 4, false)},
		"residual":            {nn.Residual(nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh())},
		"concat":              {nn.Concat(nn.Linear(8, 3), nn.Tanh(), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 5)))},
		"checkpoint":          {nn.Checkpoint(nn.Linear(8, 8), nn.Tanh()), nn.Checkpoint(nn.Linear(8, 6), nn.Tanh())},
		"checkpoint in one":   {nn.Checkpoint(nn.Residual(nn.Linear(8, 8)), nn.Checkpoint(nn.LayerNorm(8), nn.Tanh()))},
		"dropout of nothing":  {nn.Dropout(0), nn.Linear(8, 2)},
		"residual, rectified": {nn.Residual(nn.Linear(8, 8), nn.ReLU()), nn.Residual(nn.Linear(8, 8), nn.GELU()), nn.Residual(nn.Linear(8, 8))},
		"recurrent":           {nn.GRU(8, 6), nn.GRU(6, 8), nn.Linear(8, 2)},
		"residual via":        {nn.ResidualVia(nn.Linear(8, 3), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3)), nn.ResidualVia(nn.Tanh(), nn.ReLU6()), nn.Residual(nn.ResidualVia(nn.Linear(3, 3), nn.Linear(3, 3), nn.GELU()), nn.Linear(3, 3))},
		"block":               {nn.Residual(nn.LayerNorm(8), nn.CausalSelfAttention(8, 2, false)), nn.Residual(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))},
		"rectified last":      {nn.Linear(8, 4), nn.ReLU()},
		"rectifier by itself": {nn.LayerNorm(8), nn.ReLU(), nn.LayerNorm(8)},
	}
}

func TestGradientsOfSequenceLayers(t *testing.T) {
	for _, context := range []int{1, 3, 70} {
		for name, layers := range sequenceLayers(context) {
			t.Run(fmt.Sprintf("%s over %d", name, context), func(t *testing.T) {
				m := built(t, []int{context, 5}, append([]nn.Layer{nn.Linear(5, 8)}, layers...)...)
				againstDifferences(t, m, 2, uint64(context))
			})
		}
	}
}

// TestLayersOnManyGoroutines: the same bytes however a batch is split, no allocation, and
// a batch that comes twice has one result.
func TestLayersOnManyGoroutines(t *testing.T) {
	for name, layers := range sequenceLayers(4) {
		t.Run(name, func(t *testing.T) {
			m := built(t, []int{4, 5}, append([]nn.Layer{nn.Linear(5, 8)}, append(layers, nn.Dropout(0.25))...)...)
			rng := rand.New(rand.NewPCG(1, 2))
			x, y := normal(rng, 600*m.In().Len()), normal(rng, 600*m.Out().Len())
			params := m.Init(1).Vector()
			var want tensor.Vector
			for _, goroutines := range []int{1, 3} {
				trainer, grad := m.Trainer(600, nn.MeanSquare()), make(tensor.Vector, len(params))
				trainer.Split(goroutines)
				trainer.Gradient(params, grad, x, y)
				if want == nil {
					want = slices.Clone(grad)
					if n := testing.AllocsPerRun(5, func() { trainer.Gradient(params, grad, x, y) }); n != 0 {
						t.Errorf("%v allocations", n)
					}
				} else if !slices.Equal(grad, want) {
					t.Errorf("%d goroutines: another gradient", goroutines)
				}
			}
		})
	}
}

func TestEmbedding(t *testing.T) {
	m := built(t, []int{3}, nn.Embedding(4, 2), nn.Positions(3, 2))
	params := m.Init(1)
	table, _ := params.Tensor("0.weight")
	places, _ := params.Tensor("1.weight")
	out := make(tensor.Vector, 6)
	m.Predict(params.Vector(), out, tensor.Vector{3, 0, 3})
	for i, row := range []int{3, 0, 3} {
		for j := range 2 {
			if want := table[2*row+j] + places[2*i+j]; out[2*i+j] != want {
				t.Errorf("place %d, value %d: %v, want %v", i, j, out[2*i+j], want)
			}
		}
	}
	rng := rand.New(rand.NewPCG(3, 3))
	againstDifferencesOf(t, m, rng, tensor.Vector{3, 0, 3, 1, 1, 1}, normal(rng, 12), nn.MeanSquare())
	sum := built(t, []int{2, 3}, nn.EmbeddingSum(5, 4), nn.Linear(4, 2))
	if !slices.Equal(sum.Out(), nn.Shape{2, 2}) {
		t.Errorf("shape %v", sum.Out())
	}
	againstDifferencesOf(t, sum, rng, tensor.Vector{0, -1, 4, 1, 1, -1, -1, -1, -1, 2, 3, 4}, normal(rng, 8), nn.MeanSquare())
	for _, wrong := range []float32{4, -1, 0.5} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "want the number of a row") {
					t.Errorf("%v: %s", wrong, said)
				}
			}()
			m.Predict(params.Vector(), out, tensor.Vector{0, wrong, 0})
		}()
	}
}

// TestDropoutDropsItsShare: in training, not in prediction, and others in the next batch.
func TestDropoutDropsItsShare(t *testing.T) {
	m := built(t, []int{1000}, nn.Dropout(0.25))
	x := make(tensor.Vector, 4000)
	for i := range x {
		x[i] = 1
	}
	out := make(tensor.Vector, len(x))
	m.Predict(nil, out, x)
	if !slices.Equal(out, x) {
		t.Error("Dropout changes what a model predicts")
	}
	// The loss is the mean of (y-0)², of which each is 0 or (4/3)².
	trainer, zeros := m.Trainer(4, nn.MeanSquare()), make(tensor.Vector, len(x))
	first, second := trainer.Gradient(nil, nil, x, zeros), trainer.Gradient(nil, nil, x, zeros)
	for _, loss := range []float64{first, second} {
		if kept := loss * 9 / 16; kept < 0.72 || kept > 0.78 {
			t.Errorf("%v of the values kept, want 0.75", kept)
		}
	}
	if first == second {
		t.Error("the same values are dropped in each batch")
	}
}

// TestCheckpointSavesRoom: the same bytes in a part of the room.
func TestCheckpointSavesRoom(t *testing.T) {
	stack := func(of func(...nn.Layer) nn.Layer) *nn.Model {
		var blocks []nn.Layer
		for range 8 {
			blocks = append(blocks, of(nn.LayerNorm(8), nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)))
		}
		return built(t, []int{8}, blocks...)
	}
	plain := stack(func(l ...nn.Layer) nn.Layer { return nn.Sequential(l...) })
	kept := stack(nn.Checkpoint)
	if kept.Layout().Hash() != plain.Layout().Hash() {
		t.Fatal("another layout")
	}
	rng := rand.New(rand.NewPCG(4, 4))
	x, y := normal(rng, 40*8), normal(rng, 40*8)
	params := plain.Init(1).Vector()
	want, got := make(tensor.Vector, len(params)), make(tensor.Vector, len(params))
	a := plain.Trainer(40, nn.MeanSquare()).Gradient(params, want, x, y)
	b := kept.Trainer(40, nn.MeanSquare()).Gradient(params, got, x, y)
	if a != b || !slices.Equal(got, want) {
		t.Errorf("losses %v and %v, or other gradients", a, b)
	}
	if all, few := nn.RoomOf(plain), nn.RoomOf(kept); few > all/4 {
		t.Errorf("room for %d values an example, %d without Checkpoint", few, all)
	}
}

func TestSequenceLayersThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		layer nn.Layer
		want  string
	}{
		{nn.LayerNorm(4), "layer 0 (LayerNorm(4)) on examples of shape [6 5]: want rows of 4 values, have 5"},
		{nn.CausalSelfAttention(5, 2, false), "a multiple of the number of heads"},
		{nn.CausalSelfAttention(4, 2, false), "want sequences of 4 values a place"},
		{nn.Positions(7, 5), "want sequences of shape [7 5]"},
		{nn.Residual(nn.Linear(5, 4)), "keep the shape"},
		{nn.Concat(), "at least one branch"},
		{nn.Concat(nn.Linear(5, 2), nn.Linear(4, 2)), "branch 1 (Linear(4, 2))"},
		{nn.Dropout(1), "a probability from 0 to below 1"},
		{nn.Embedding(0, 3), "1 to 16777216 rows"},
	} {
		if _, err := nn.Sequential(c.layer).Build(6, 5); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}
