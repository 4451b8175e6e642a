package nets

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

func TestGPTHasItsParameters(t *testing.T) {
	m, err := NewGPT(Sizes{})
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Layout().Len(); n != 873_216 {
		t.Errorf("%d parameters, want 873,216", n)
	}
	for _, wrong := range []Sizes{{Layers: -1}, {Width: 130}, {Heads: 129}, {Context: 1 << 20}} {
		if _, err := NewGPT(wrong); !errors.Is(err, ErrModel) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// BenchmarkGPT is the step of issue 22: 16 windows of 128 bytes.
func BenchmarkGPT(b *testing.B) {
	m, err := NewGPT(Sizes{})
	if err != nil {
		b.Fatal(err)
	}
	const windows, context = 16, 128
	batch := dataset.Batch{X: make(tensor.Vector, windows*context), Labels: make([]uint8, windows*context)}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range batch.X {
		batch.X[i], batch.Labels[i] = float32(rng.IntN(Vocabulary)), uint8(rng.IntN(Vocabulary))
	}
	params, grad := make(tensor.Vector, m.Layout().Len()), make(tensor.Vector, m.Layout().Len())
	m.Init(1, params)
	b.ReportAllocs()
	for b.Loop() {
		m.Gradient(params, &batch, grad)
	}
	b.ReportMetric(windows*context*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}
