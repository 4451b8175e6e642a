package nets

import (
	"flag"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
	"github.com/seed-97356399/murmuration/tensor"
)

var figures = flag.Bool("figures", false, "train to the end and log accuracies; takes minutes")

// needsKernels skips a training that the plain loops would take a minute for: they
// are held to the same numbers by TestFixedProblem.
func needsKernels(t *testing.T) {
	t.Helper()
	if tensor.Instructions() == "go" {
		t.Skip("no vector instructions in this build")
	}
}

func glyphs(t testing.TB, train, heldOut int) (*dataset.Set, *dataset.Set) {
	t.Helper()
	a, err := dataset.Glyphs(1, seeded.Identity(train))
	if err != nil {
		t.Fatal(err)
	}
	b, err := dataset.HeldOutGlyphs(heldOut)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// Glyphs are not trivial: what a linear model learns in a short training stays
// far below what a hidden layer makes of the same pictures.
func TestHiddenLayerBeatsLinear(t *testing.T) {
	train, heldOut := glyphs(t, 8000, 2000)
	r := recipe{batch: 32, rate: 0.02, momentum: 0.9, passes: 4}
	linear := accuracy(t, modelFor(t, "softmax", train), train, heldOut, r)
	hidden := accuracy(t, modelFor(t, "mlp", train), train, heldOut, r)
	t.Logf("held-out accuracy: softmax %.4f, mlp %.4f", linear, hidden)
	if linear > 0.85 || hidden < linear+0.08 {
		t.Errorf("softmax %.4f, mlp %.4f: want a gap of 0.08 and softmax at most 0.85", linear, hidden)
	}
}

// Convolutions need fewer pictures for the same digits, with a tenth of the
// parameters.
func TestConvolutionsBeatHiddenLayer(t *testing.T) {
	needsKernels(t)
	train, heldOut := glyphs(t, 3000, 2000)
	r := recipe{batch: 32, rate: 0.02, momentum: 0.9, passes: 4}
	hidden := accuracy(t, modelFor(t, "mlp", train), train, heldOut, r)
	r.rate = 0.01
	conv := accuracy(t, modelFor(t, "cnn", train), train, heldOut, r)
	t.Logf("held-out accuracy: mlp %.4f, cnn %.4f", hidden, conv)
	if conv < 0.93 || conv < hidden+0.02 {
		t.Errorf("mlp %.4f, cnn %.4f: want a gap of 0.02 and cnn at least 0.93", hidden, conv)
	}
}

// Directions of stripes and a slight cast of colour are learnt in a minute's worth
// of photographs' steps; a linear model sees neither direction.
func TestMobileNetLearnsStripes(t *testing.T) {
	needsKernels(t)
	train, heldOut := stripes(t, 1, 1500, 16), stripes(t, 2, 500, 16)
	r := recipe{batch: 32, rate: 0.05, momentum: 0.9, passes: 4}
	linear := accuracy(t, modelFor(t, "softmax", train), train, heldOut, recipe{batch: 32, rate: 0.002, momentum: 0.9, passes: 4})
	deep := accuracy(t, modelFor(t, "mobilenet-small", train), train, heldOut, r)
	t.Logf("held-out accuracy: softmax %.4f, mobilenet-small %.4f", linear, deep)
	if linear > 0.6 || deep < 0.95 {
		t.Errorf("softmax %.4f, mobilenet-small %.4f: want at most 0.6 and at least 0.95", linear, deep)
	}
}

// The figures of DESIGN section 7: what a whole training reaches.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("give -figures to train to the end")
	}
	glyphs := func(t *testing.T) dataset.Config { return dataset.Config{Name: "glyphs"} }
	onDisk := func(name string) func(*testing.T) dataset.Config {
		return func(t *testing.T) dataset.Config { return dataset.Config{Name: name, Dir: ztest.DataDir(t, name)} }
	}
	for _, c := range []struct {
		name, model string
		config      func(*testing.T) dataset.Config
		recipe      recipe
		parts       int
		every       int
	}{
		{"glyphs, one softmax", "softmax", glyphs, recipe{32, 0.03, 0.9, 8}, 1, 0},
		{"glyphs, one softmax, slower", "softmax", glyphs, recipe{32, 0.005, 0.9, 8}, 1, 0},
		{"glyphs, flock of softmax", "softmax", glyphs, recipe{32, 0.03, 0.9, 8}, 4, 16},
		{"glyphs, one mlp", "mlp", glyphs, recipe{32, 0.03, 0.9, 8}, 1, 0},
		{"glyphs, one mlp on a quarter", "mlp", glyphs, recipe{32, 0.03, 0.9, 8}, 4, 0},
		{"glyphs, flock", "mlp", glyphs, recipe{32, 0.03, 0.9, 8}, 4, 16},
		{"glyphs, flock, 64 local steps", "mlp", glyphs, recipe{32, 0.03, 0.9, 8}, 4, 64},
		{"mnist, flock", "mlp", onDisk("mnist"), recipe{32, 0.03, 0.9, 3}, 4, 16},
		{"mnist, alone on a quarter", "mlp", onDisk("mnist"), recipe{32, 0.03, 0.9, 3}, 4, 0},
		{"fashion-mnist, flock", "mlp", onDisk("fashion-mnist"), recipe{32, 0.03, 0.9, 5}, 4, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			flock(t, c.model, c.config(t), c.recipe, c.parts, c.every)
		})
	}
}

// flock trains one model on each of several parts, in turn on one core. Every
// so many steps each averages its parameters with the next of them at a growing
// distance, as the peers of a run would. With every 0 a single one trains alone.
func flock(t *testing.T, model string, config dataset.Config, r recipe, parts, every int) {
	var learners []*learner
	var data *dataset.Data
	for part := range parts {
		config.Part, config.Parts = part, parts
		var err error
		if data, err = dataset.Load(config); err != nil {
			t.Fatal(err)
		}
		learners = append(learners, newLearner(t, mustModel(t, model), data.Train, r, uint64(part)))
		if every == 0 {
			break
		}
	}
	start, steps := time.Now(), 0
	for hop := 1; !learners[0].done(); {
		for _, l := range learners {
			l.learn()
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
