package nets

import (
	"flag"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
	"github.com/seed-97356399/murmuration/tensor"
)

var figures = flag.Bool("figures", false, "train to the end and log accuracies; takes an hour or so")

// The figures of DESIGN section 7 and their like: what a whole training reaches.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("give -figures to train to the end")
	}
	for _, c := range []struct {
		name, model, data string
		recipe            recipe
		parts             int
		every             int
	}{
		{"glyphs, one softmax", "softmax", "glyphs", recipe{32, 0.03, 0.9, 8}, 1, 0},
		{"glyphs, one softmax, slower", "softmax", "glyphs", recipe{32, 0.005, 0.9, 8}, 1, 0},
		{"glyphs, flock of softmax", "softmax", "glyphs", recipe{32, 0.03, 0.9, 8}, 4, 16},
		{"glyphs, one mlp", "mlp", "glyphs", recipe{32, 0.03, 0.9, 8}, 1, 0},
		{"glyphs, one mlp on a quarter", "mlp", "glyphs", recipe{32, 0.03, 0.9, 8}, 4, 0},
		{"glyphs, flock", "mlp", "glyphs", recipe{32, 0.03, 0.9, 8}, 4, 16},
		{"glyphs, flock, 64 local steps", "mlp", "glyphs", recipe{32, 0.03, 0.9, 8}, 4, 64},
		{"glyphs, flock of cnn", "cnn", "glyphs", recipe{32, 0.03, 0.9, 8}, 4, 16},
		{"mnist, flock", "mlp", "mnist", recipe{32, 0.03, 0.9, 3}, 4, 16},
		{"mnist, alone on a quarter", "mlp", "mnist", recipe{32, 0.03, 0.9, 3}, 4, 0},
		{"fashion-mnist, flock", "mlp", "fashion-mnist", recipe{32, 0.03, 0.9, 5}, 4, 16},
		{"fashion-mnist, one cnn", "cnn", "fashion-mnist", recipe{64, 0.05, 0.9, 12}, 1, 0},
		{"fashion-mnist, flock of cnn", "cnn", "fashion-mnist", recipe{64, 0.05, 0.9, 12}, 4, 16},
		{"cifar10, one mobilenet-small", "mobilenet-small", "cifar10", recipe{64, 0.003, 0, 10}, 1, 0},
		{"cifar10, flock of mobilenet-small", "mobilenet-small", "cifar10", recipe{64, 0.003, 0, 10}, 4, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := dataset.Config{Name: c.data}
			if c.data != "glyphs" {
				config.Dir = ztest.DataDir(t, c.data)
			}
			flock(t, c.model, config, c.recipe, c.parts, c.every)
		})
	}
}

// flock trains one model on each of several parts, in turn on one core. Every
// so many steps each averages its parameters with the next of them at a growing
// distance, as the peers of a run would. With every 0 a single one trains alone.
// Photographs are flipped and cropped.
func flock(t *testing.T, model string, config dataset.Config, r recipe, parts, every int) {
	var learners []*learner
	var data *dataset.Data
	for part := range parts {
		config.Part, config.Parts = part, parts
		var err error
		if data, err = dataset.Load(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		m, err := ByName(model, data.Shape(), data.Classes())
		if err != nil {
			t.Fatal(err)
		}
		colour := data.Shape().Channels > 1
		batches, err := data.Batches(r.batch, uint64(part), dataset.Augment{Flip: colour, Crop: colour})
		if err != nil {
			t.Fatal(err)
		}
		defer batches.Close()
		learners = append(learners, learnerOf(m, batches, data.Len(), r))
		if every == 0 {
			break
		}
	}
	start, steps := time.Now(), 0
	for hop := 1; !learners[0].done(); {
		for _, l := range learners {
			l.learn(t)
			steps++
		}
		if every > 0 && learners[0].step%every == 0 {
			for i, l := range learners {
				if i%(2*hop) < hop {
					merge(l.x, learners[(i+hop)%parts].x)
				}
			}
			if hop *= 2; hop >= parts {
				hop = 1
			}
		}
	}
	seconds := time.Since(start).Seconds()
	low, high, sum := 1.0, 0.0, 0.0
	for _, l := range learners {
		a, _ := l.model.Evaluate(l.x, data.HeldOut)
		low, high, sum = min(low, a), max(high, a), sum+a
	}
	t.Logf("%s, %d of %d parts, every %d, %+v: accuracy %.4f (%.4f to %.4f), %.1f s, %.0f pictures/s",
		model, len(learners), parts, every, r, sum/float64(len(learners)), low, high, seconds, float64(steps*r.batch)/seconds)
}

// merge gives both vectors their mean.
func merge(a, b tensor.Vector) {
	tensor.Add(a, b)
	tensor.Scale(a, 0.5)
	copy(b, a)
}
