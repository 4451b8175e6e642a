package nets

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
	"github.com/seed-97356399/murmuration/tensor"
)

// oracleLoss is the mean cross entropy of a network, computed one number at a
// time in float64.
func oracleLoss(sizes []int, params []float64, batch *dataset.Batch) float64 {
	sum := 0.0
	for i, label := range batch.Labels {
		x := make([]float64, sizes[0])
		for j := range x {
			x[j] = float64(batch.X[i*sizes[0]+j])
		}
		rest := params
		for l := range len(sizes) - 1 {
			in, out := sizes[l], sizes[l+1]
			y := make([]float64, out)
			for k := range y {
				y[k] = rest[in*out+k]
				for j := range x {
					y[k] += x[j] * rest[j*out+k]
				}
				if l < len(sizes)-2 {
					y[k] = max(y[k], 0)
				}
			}
			x, rest = y, rest[in*out+out:]
		}
		total := 0.0
		for _, v := range x {
			total += math.Exp(v)
		}
		sum += math.Log(total) - x[label]
	}
	return sum / float64(batch.Len())
}

func randomBatch(rng *rand.Rand, n, inputs, classes int) *dataset.Batch {
	b := &dataset.Batch{}
	b.Resize(n, inputs)
	for i := range b.X {
		b.X[i] = float32(rng.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = uint8(rng.IntN(classes))
	}
	return b
}

// The gradient is that of central differences of the oracle, for networks of
// none to two hidden layers.
func TestGradientAgainstDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 6), 2, 4).Draw(t, "sizes")
		n := rapid.IntRange(1, 7).Draw(t, "batch")
		rng := seeded.Rand(rapid.Uint64().Draw(t, "seed"), seeded.Order, 0)
		model, err := NewMLP(sizes...)
		if err != nil {
			t.Fatal(err)
		}
		params := make(tensor.Vector, model.Layout().Len())
		exact := make([]float64, len(params))
		for i := range params {
			params[i] = float32(rng.NormFloat64())
			exact[i] = float64(params[i])
		}
		batch := randomBatch(rng, n, sizes[0], sizes[len(sizes)-1])
		grad := make(tensor.Vector, len(params))
		for i := range grad {
			grad[i] = 77 // must be overwritten
		}
		loss := model.Gradient(params, batch, grad)
		if want := oracleLoss(sizes, exact, batch); math.Abs(loss-want) > 1e-5*(1+want) {
			t.Fatalf("loss %v, want %v", loss, want)
		}
		const h = 1e-6
		for i, x := range exact {
			exact[i] = x + h
			up := oracleLoss(sizes, exact, batch)
			exact[i] = x - h
			down := oracleLoss(sizes, exact, batch)
			exact[i] = x
			want := (up - down) / (2 * h)
			if math.Abs(float64(grad[i])-want) > 1e-4*(1+math.Abs(want)) {
				t.Fatalf("gradient of parameter %d of %v is %v, want %v", i, sizes, grad[i], want)
			}
		}
	})
}

// Products are right at and around the edges of panels.
func TestMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]int{1, 2, panelRows - 1, panelRows, panelRows + 1, 2*panelRows + 3}).Draw(t, "rows")
		n := rapid.SampledFrom([]int{1, 3, panelCols - 1, panelCols, panelCols + 1, 2*panelCols + 5}).Draw(t, "columns")
		k := rapid.IntRange(1, 9).Draw(t, "inner")
		transA := rapid.SampledFrom([]blas.Transpose{blas.NoTrans, blas.Trans}).Draw(t, "transpose a")
		transB := rapid.SampledFrom([]blas.Transpose{blas.NoTrans, blas.Trans}).Draw(t, "transpose b")
		rng := seeded.Rand(1, seeded.Order, uint64(m*n*k))
		random := func(rows, cols int, trans blas.Transpose) (blas32.General, func(i, j int) float64) {
			if trans == blas.Trans {
				rows, cols = cols, rows
			}
			a := matrix(rows, cols, make([]float32, rows*cols))
			for i := range a.Data {
				a.Data[i] = float32(rng.IntN(19) - 9)
			}
			return a, func(i, j int) float64 {
				if trans == blas.Trans {
					i, j = j, i
				}
				return float64(a.Data[i*cols+j])
			}
		}
		a, atA := random(m, k, transA)
		b, atB := random(k, n, transB)
		c := matrix(m, n, make([]float32, m*n))
		for i := range c.Data {
			c.Data[i] = 77 // must be overwritten
		}
		multiply(transA, transB, a, b, c)
		for i := range m {
			for j := range n {
				want := 0.0
				for l := range k {
					want += atA(i, l) * atB(l, j)
				}
				if float64(c.Data[i*n+j]) != want {
					t.Fatalf("c[%d][%d] is %v, want %v", i, j, c.Data[i*n+j], want)
				}
			}
		}
	})
}

// The loss stays finite where a naive softmax overflows.
func TestLossOfHugeLogits(t *testing.T) {
	logits := matrix(2, 3, []float32{1e4, -1e4, 0, -1e30, 1e30, 3e38})
	loss := softmaxErrors(logits, []uint8{0, 2})
	if math.Abs(loss) > 1e-9 {
		t.Errorf("loss %v, want 0", loss)
	}
	for _, e := range logits.Data {
		if e != 0 {
			t.Errorf("errors %v, want 0", logits.Data)
		}
	}
}

// All peers of a run start from these bytes, whatever their processor.
func TestInitIsGolden(t *testing.T) {
	var out strings.Builder
	for _, name := range Names() {
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

// Weights fill their range evenly: the variance is that of He et al.
func TestInitVariance(t *testing.T) {
	model, err := NewMLP(400, 300, 10)
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(model.Layout())
	model.Init(1, params.Vector())
	for name, want := range map[string]float64{"layer0.weight": 2.0 / 400, "layer0.bias": 0, "layer1.weight": 1.0 / 300, "layer1.bias": 0} {
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

func TestGradientAllocatesNothing(t *testing.T) {
	model := mustModel(t, "mlp")
	x := make(tensor.Vector, model.Layout().Len())
	grad := make(tensor.Vector, len(x))
	model.Init(1, x)
	rng := seeded.Rand(1, seeded.Order, 0)
	large, small := randomBatch(rng, 100, dataset.Inputs, dataset.Classes), randomBatch(rng, 64, dataset.Inputs, dataset.Classes)
	model.Gradient(x, large, grad)
	if n := testing.AllocsPerRun(3, func() {
		model.Gradient(x, small, grad)
		model.Gradient(x, large, grad)
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// Evaluate sees every picture once, the last incomplete batch too.
func TestEvaluate(t *testing.T) {
	set, err := dataset.HeldOutGlyphs(2*evaluationBatch + 3)
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
			for j, v := range all.X[i*dataset.Inputs : (i+1)*dataset.Inputs] {
				scores[c] += float64(v) * float64(x[j*dataset.Classes+c])
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

func TestModelsRefuse(t *testing.T) {
	if _, err := ByName("resnet", digits, dataset.Classes); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "mlp, softmax") {
		t.Errorf("unknown name: %v", err)
	}
	for _, sizes := range [][]int{nil, {3}, {3, 0}, {-1, 2}, {3, 257}, {1 << 21, 2}} {
		if _, err := NewMLP(sizes...); !errors.Is(err, ErrModel) {
			t.Errorf("sizes %v: %v", sizes, err)
		}
	}
}

func BenchmarkGradient(b *testing.B) {
	set, err := dataset.Glyphs(1, seeded.Identity(2000))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			l := newLearner(b, mustModel(b, name), set, recipe{batch: 64}, 1)
			l.sampler.Next(&l.batch)
			l.model.Gradient(l.x, &l.batch, l.g)
			b.ReportAllocs()
			for b.Loop() {
				l.sampler.Next(&l.batch)
				l.model.Gradient(l.x, &l.batch, l.g)
			}
			b.ReportMetric(float64(b.N)*64/b.Elapsed().Seconds(), "pictures/s")
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	set, err := dataset.HeldOutGlyphs(10_000)
	if err != nil {
		b.Fatal(err)
	}
	model := mustModel(b, "mlp")
	x := make(tensor.Vector, model.Layout().Len())
	model.Init(1, x)
	b.ReportAllocs()
	for b.Loop() {
		model.Evaluate(x, set)
	}
}
