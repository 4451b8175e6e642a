package nets

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// Probabilities are of the order of the set, add up to 1, and have the loss that Evaluate tells.
func TestProbabilities(t *testing.T) {
	set, err := dataset.HeldOutGlyphs(glance + 3)
	if err != nil {
		t.Fatal(err)
	}
	model := mustModel(t, "softmax")
	x := make(tensor.Vector, model.Layout().Len())
	model.Init(3, x)
	p := model.Probabilities(x, set)
	if len(p) != set.Len()*dataset.Classes {
		t.Fatalf("%d numbers for %d pictures", len(p), set.Len())
	}
	loss := 0.0
	for i := range set.Len() {
		row, sum := p[i*dataset.Classes:(i+1)*dataset.Classes], 0.0
		for _, v := range row {
			sum += v
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("picture %d: %v in all", i, sum)
		}
		loss -= math.Log(row[set.Label(i)]) / float64(set.Len())
	}
	if _, want := model.Evaluate(x, set); math.Abs(loss-want) > 1e-6 {
		t.Errorf("loss %v, Evaluate tells %v", loss, want)
	}
}
