package nets

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestGPTCurve trains as docs/torch/curve.py does: 1,500 steps of 16 windows of Go's
// sources.
func TestGPTCurve(t *testing.T) {
	if !*figures {
		t.Skip("give -figures to train to the end")
	}
	const steps, warmup, batch = 1500, 100, 16
	data, err := dataset.Load(t.Context(), dataset.Config{Name: dataset.GoSource})
	if err != nil {
		t.Fatal(err)
	}
	model, err := ByName(GPT, data.Shape(), data.Classes())
	if err != nil {
		t.Fatal(err)
	}
	batches, err := data.Batches(batch, 1, dataset.Augment{})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	x, grad := make(tensor.Vector, model.Layout().Len()), make(tensor.Vector, model.Layout().Len())
	model.Init(1, x)
	optimizer := &optim.AdamW{Beta2: 0.95, WeightDecay: 0.1, Clip: 1}
	bits := func(step int) {
		_, loss := model.Evaluate(x, data.HeldOut)
		t.Logf("%d steps: %.3f bits per byte", step, loss/math.Ln2)
	}
	var b dataset.Batch
	for step := range steps {
		if step%250 == 0 {
			bits(step)
		}
		rate := float64(step+1) / warmup
		if step >= warmup {
			rate = 0.1 + 0.9*0.5*(1+math.Cos(math.Pi*float64(step-warmup)/(steps-warmup)))
		}
		if err := batches.Next(&b); err != nil {
			t.Fatal(err)
		}
		model.Gradient(x, &b, grad)
		optimizer.Delta(grad, x, 1e-3*rate)
		tensor.Add(x, grad)
	}
	bits(steps)
}
