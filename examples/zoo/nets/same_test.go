package nets

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
	"github.com/seed-97356399/murmuration/tensor"
)

// smallProblem is a set that every model learns something of in little time.
func smallProblem(t testing.TB, model string) *dataset.Set {
	t.Helper()
	if ReadsText(model) {
		set, err := dataset.NewText([]byte(strings.Repeat("models that learn to say what follows ", 40)), 16)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	if model == "cnn" || model == "mobilenet-small" || model == "resnet-small" {
		return stripes(t, 1, 256, 12)
	}
	set, err := dataset.Glyphs(1, seeded.Identity(256))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func modelFor(t testing.TB, name string, set *dataset.Set) Model {
	t.Helper()
	m, err := ByName(name, set.Shape(), set.Classes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Two models of a name that take the same steps hold the same bytes, whatever
// stands in the room of one of them from earlier work.
func TestSameStepsSameBytes(t *testing.T) {
	const steps = 10
	for _, name := range small() {
		t.Run(name, func(t *testing.T) {
			set := smallProblem(t, name)
			var ends []tensor.Vector
			for _, used := range []bool{false, true} {
				model := modelFor(t, name, set)
				if used {
					x := make(tensor.Vector, model.Layout().Len())
					model.Init(7, x)
					model.Evaluate(x, set)
					var b dataset.Batch
					set.Fill(&b, 0, 3*few)
					model.Gradient(x, &b, make(tensor.Vector, len(x)))
				}
				l := newLearner(t, model, set, recipe{batch: few + 2, rate: 0.02, momentum: 0.9, passes: 4}, 2)
				start := slices.Clone(l.x)
				for range steps {
					l.learn(t)
				}
				if tensor.SquaredDistance(start, l.x) == 0 || !tensor.Finite(l.x) {
					t.Fatal("nothing was learnt")
				}
				ends = append(ends, l.x)
			}
			if !slices.Equal(ztest.BytesOf(ends[0]), ztest.BytesOf(ends[1])) {
				t.Errorf("%g apart after %d equal steps", math.Sqrt(tensor.SquaredDistance(ends[0], ends[1])), steps)
			}
		})
	}
}

// Every build and processor comes, within rounding, to the parameters and losses
// in the golden file, which a build with assembly wrote.
func TestFixedProblem(t *testing.T) {
	const steps, samples = 20, 200
	var got []ztest.Series
	for _, name := range small() {
		set := smallProblem(t, name)
		rate := 0.01
		if name == "mobilenet-small" || name == "resnet-small" || name == GPT { // whose normalizations make the first steps long ones
			rate = 0.003
		}
		l := newLearner(t, modelFor(t, name, set), set, recipe{batch: 2 * few, rate: rate, momentum: 0.9, passes: 4}, 3)
		start := slices.Clone(l.x)
		losses := ztest.Series{Name: name + " losses"}
		for range steps {
			losses.Values = append(losses.Values, l.learn(t))
		}
		values := ztest.Series{Name: name + " parameters"}
		moved := 0.0
		for i := range samples {
			at := i * (len(l.x) - 1) / (samples - 1)
			values.Values = append(values.Values, float64(l.x[at]))
			moved += math.Abs(float64(l.x[at]-start[at])) / samples
		}
		if t.Logf("%s: sampled parameters moved by %.2g on average, the loss from %.3f to %.3f", name, moved, losses.Values[0], losses.Values[steps-1]); moved < 1e-4 {
			t.Errorf("%s: sampled parameters moved by %g, want far more than the tolerance", name, moved)
		}
		got = append(got, losses, values)
	}
	ztest.Numbers(t, "fixed.txt", got, 1e-5)
}
