package nets

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

func BenchmarkGradient(b *testing.B) {
	set, err := dataset.Glyphs(1, seeded.Identity(2000))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range ofPictures {
		b.Run(name, func(b *testing.B) {
			l := newLearner(b, mustModel(b, name), set, recipe{batch: 64}, 1)
			l.batches.Next(&l.batch)
			l.model.Gradient(l.x, &l.batch, l.g)
			b.ReportAllocs()
			for b.Loop() {
				l.batches.Next(&l.batch)
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
