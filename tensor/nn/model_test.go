package nn_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// perceptron is a small model of two layers.
func perceptron(t testing.TB) *nn.Model {
	t.Helper()
	return built(t, []int{5}, nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
}

func built(t testing.TB, in []int, layers ...nn.Layer) *nn.Model {
	t.Helper()
	m, err := nn.Sequential(layers...).Build(in...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// batch is random examples, and the targets of classes.
func batch(m *nn.Model, n int, seed uint64) (x, y tensor.Vector) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x = normal(rng, n*m.In().Len())
	y = make(tensor.Vector, n*m.Out().Rows())
	for i := range y {
		y[i] = float32(rng.IntN(m.Out().Width()))
	}
	return x, y
}

func normal(rng *rand.Rand, n int) tensor.Vector {
	v := make(tensor.Vector, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func TestNamesShapesAndStartsAreTorchs(t *testing.T) {
	m := perceptron(t)
	var got []string
	for _, r := range m.Layout().Ranges() {
		got = append(got, fmt.Sprintf("%s%v%v", r.Name, r.Shape, r.Kind))
	}
	want := []string{"0.weight[7 5]dense", "0.bias[7]bias", "2.weight[3 7]dense", "2.bias[3]bias"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	params := m.Init(1)
	for _, c := range []struct {
		name string
		most float64
	}{{"0.weight", 1 / math.Sqrt(5)}, {"0.bias", 1 / math.Sqrt(5)}, {"2.weight", 1 / math.Sqrt(7)}} {
		values, _ := params.Tensor(c.name)
		largest := 0.0
		for _, v := range values {
			largest = max(largest, math.Abs(float64(v)))
		}
		if largest > c.most || largest < c.most/2 {
			t.Errorf("%s starts within ±%g, want nearly ±%g", c.name, largest, c.most)
		}
	}
	if !slices.Equal(params.Vector(), m.Init(1).Vector()) || slices.Equal(params.Vector(), m.Init(2).Vector()) {
		t.Error("a seed does not tell the start")
	}
}

func TestNormalStartsAreNormal(t *testing.T) {
	m := built(t, []int{200}, nn.WithStart(nn.Linear(200, 500), nn.Normal(0.02)))
	w, _ := m.Init(3).Tensor("0.weight")
	sum, squares := 0.0, 0.0
	for _, v := range w {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(w))
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 3e-4 || math.Abs(deviation-0.02) > 3e-4 {
		t.Errorf("mean %g and deviation %g, want 0 and 0.02", mean, deviation)
	}
}

func TestLayersThatDoNotFitAreNamed(t *testing.T) {
	for _, c := range []struct {
		in     []int
		layers []nn.Layer
		want   string
	}{
		{[]int{6}, []nn.Layer{nn.Linear(5, 7)}, "layer 0 (Linear(5, 7)) on examples of shape [6]: want rows of 5 values, have 6"},
		{[]int{5}, []nn.Layer{nn.Linear(5, 7), nn.ReLU(), nn.Linear(8, 2)}, "layer 2 (Linear(8, 2))"},
		{[]int{2, 3, 4}, []nn.Layer{nn.Linear(24, 7)}, "put Flatten before it"},
		{[]int{5}, []nn.Layer{nn.Sequential(nn.ReLU(), nn.Linear(4, 4))}, "layer 1 (Linear(4, 4))"},
		{[]int{5}, []nn.Layer{nn.Linear(5, 0)}, "at least one"},
		{[]int{5}, []nn.Layer{nil}, "layer 0 is nil"},
		{[]int{0}, []nn.Layer{nn.ReLU()}, "dimensions of at least 1"},
		{nil, []nn.Layer{nn.ReLU()}, "1 to 4 dimensions"},
	} {
		if _, err := nn.Sequential(c.layers...).Build(c.in...); !errors.Is(err, nn.ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}

// TestOneResultForAnyNumberOfGoroutines: the gradient of a batch of many passes is the
// same bytes, and equals that of its examples one by one.
func TestOneResultForAnyNumberOfGoroutines(t *testing.T) {
	const examples = 1500
	m := perceptron(t)
	x, y := batch(m, examples, 4)
	params := m.Init(1).Vector()
	var want tensor.Vector
	var wantLoss float64
	for _, goroutines := range []int{1, 2, 3, 8, 0} {
		trainer := m.Trainer(32, nn.CrossEntropy())
		trainer.Split(goroutines)
		for range 2 {
			grad := normal(rand.New(rand.NewPCG(1, 1)), m.Layout().Len()) // whatever was there
			loss := trainer.Gradient(params, grad, x, y)
			if want == nil {
				want, wantLoss = grad, loss
			}
			if loss != wantLoss || !slices.Equal(grad, want) {
				t.Fatalf("%d goroutines: loss %v and another gradient, want loss %v", goroutines, loss, wantLoss)
			}
		}
		if loss := trainer.Loss(params, x, y); loss != wantLoss {
			t.Errorf("Loss %v, Gradient's %v", loss, wantLoss)
		}
	}
	single, sum := m.Trainer(1, nn.CrossEntropy()), make([]float64, m.Layout().Len())
	grad := make(tensor.Vector, m.Layout().Len())
	for i := range examples {
		single.Gradient(params, grad, x[i*5:(i+1)*5], y[i:i+1])
		for j, v := range grad {
			sum[j] += float64(v) / examples
		}
	}
	for j, v := range want {
		if math.Abs(float64(v)-sum[j]) > 1e-6 {
			t.Fatalf("value %d is %v, the mean of single examples %v", j, v, sum[j])
		}
	}
}

func TestATrainerLearns(t *testing.T) {
	m := perceptron(t)
	x, _ := batch(m, 64, 5)
	y := make(tensor.Vector, 64)
	for i := range y { // which of two values is larger
		if x[i*5] > x[i*5+1] {
			y[i] = 1
		}
	}
	params, grad := m.Init(1), make(tensor.Vector, m.Layout().Len())
	trainer := m.Trainer(64, nn.CrossEntropy())
	first := trainer.Loss(params.Vector(), x, y)
	for range 200 {
		trainer.Gradient(params.Vector(), grad, x, y)
		tensor.Axpy(params.Vector(), -0.5, grad)
	}
	if last := trainer.Loss(params.Vector(), x, y); !(last < first/5) {
		t.Errorf("the loss went from %v to %v", first, last)
	}
}

// TestPredictFromManyGoroutines: all get what one alone gets.
func TestPredictFromManyGoroutines(t *testing.T) {
	m := perceptron(t)
	params := m.Init(1).Vector()
	x, _ := batch(m, 700, 6)
	want := make(tensor.Vector, 700*3)
	m.Predict(params, want, x)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			out := make(tensor.Vector, len(want))
			for range 5 {
				m.Predict(params, out, x)
				if !slices.Equal(out, want) {
					t.Error("another result")
				}
			}
		})
	}
	all.Wait()
}

func TestAStepAllocatesNothing(t *testing.T) {
	m := perceptron(t)
	params := m.Init(1).Vector()
	grad, out := make(tensor.Vector, len(params)), make(tensor.Vector, 600*3)
	x, y := batch(m, 600, 7)
	trainer := m.Trainer(600, nn.CrossEntropy())
	for name, do := range map[string]func(){
		"Gradient": func() { trainer.Gradient(params, grad, x, y) },
		"Loss":     func() { trainer.Loss(params, x, y) },
		"Predict":  func() { m.Predict(params, out, x) },
	} {
		if n := testing.AllocsPerRun(10, do); n != 0 { // of which a stray one of the runtime is none
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	m := perceptron(t)
	params, short := m.Init(1).Vector(), make(tensor.Vector, 3)
	x, y := batch(m, 2, 8)
	grad := make(tensor.Vector, len(params))
	trainer := m.Trainer(2, nn.CrossEntropy())
	for name, do := range map[string]func(){
		"loss":   func() { m.Trainer(2, nil) },
		"alias":  func() { trainer.Gradient(params, params, x, y) },
		"params": func() { trainer.Gradient(short, grad, x, y) },
		"grad":   func() { trainer.Gradient(params, short, x, y) },
		"x":      func() { trainer.Gradient(params, grad, x[1:], y) },
		"y":      func() { trainer.Gradient(params, grad, x, y[1:]) },
		"label":  func() { trainer.Gradient(params, grad, x, tensor.Vector{0, 3}) },
		"half":   func() { trainer.Gradient(params, grad, x, tensor.Vector{0, 0.5}) },
		"out":    func() { m.Predict(params, short, x) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if told, ok := recover().(string); !ok || !strings.HasPrefix(told, "nn: ") {
					t.Errorf("panic %q", told)
				}
			}()
			do()
		})
	}
}

func TestAnEmptyBatchHasNoGradient(t *testing.T) {
	m := perceptron(t)
	grad := normal(rand.New(rand.NewPCG(1, 1)), m.Layout().Len())
	if loss := m.Trainer(1, nn.CrossEntropy()).Gradient(m.Init(1).Vector(), grad, nil, nil); loss != 0 || tensor.Norm2(grad) != 0 {
		t.Errorf("loss %v, gradient of length %v", loss, tensor.Norm2(grad))
	}
}
