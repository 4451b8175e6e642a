package nn

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestReady shows that Gradient tells of final values, the last layers first, and computes the same gradient, whether it
// needs one lane or several.
func TestReady(t *testing.T) {
	for _, examples := range []int{1, 3, 40} {
		for _, kept := range []int{0, 1 << 30} { // all in one pass; in several, as where a pass would be too large
			m, err := Sequential(Conv2d(1, 4, 3, Conv{Padding: 1}), ReLU(), MaxPool2d(2), Flatten(), Linear(64, 8), ReLU(), Linear(8, 3)).Build(8, 8, 1)
			if err != nil {
				t.Fatal(err)
			}
			m.pass, m.kept = 4, kept
			params := m.Init(1).Vector()
			x, y := make(tensor.Vector, 64*examples), make(tensor.Vector, examples)
			for i := range x {
				x[i] = float32(i%23)/23 - 0.4
			}
			want, grad := make(tensor.Vector, len(params)), make(tensor.Vector, len(params))
			plain := m.Trainer(examples, CrossEntropy())
			if kept == 0 {
				plain.model.pass = examples
			}
			plain.Gradient(params, want, x, y)
			trainer := m.Trainer(examples, CrossEntropy())
			var told []int
			trainer.Ready = func(from int) {
				told = append(told, from)
				if !slices.Equal(grad[from:], want[from:]) {
					t.Errorf("%d examples: values from %d on are not final", examples, from)
				}
			}
			if trainer.Gradient(params, grad, x, y); !slices.Equal(told, []int{len(params), 560, 40, 0}) {
				t.Errorf("%d examples: told of %v", examples, told)
			}
			if !slices.Equal(grad, want) {
				t.Errorf("%d examples: another gradient", examples)
			}
			calls := 0
			trainer.Ready = func(int) { calls++ }
			if n := testing.AllocsPerRun(5, func() { trainer.Gradient(params, grad, x, y) }); n != 0 {
				t.Errorf("%d examples: %v allocations", examples, n)
			}
			calls = 0
			if trainer.Loss(params, x, y); calls != 0 {
				t.Errorf("%d examples: Loss told %d times", examples, calls)
			}
		}
	}
}

// The layers of a shortcut are work as well.
func TestReadinessOfAShortcut(t *testing.T) {
	m, err := Sequential(Linear(4, 4), ResidualVia(Linear(4, 6), Linear(4, 6))).Build(4)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Readiness()[0].Done, (80+2*60)/(3*80-20.0); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestReadiness shows when a gradient's values are final, by the work of layers.
func TestReadiness(t *testing.T) {
	m, err := Sequential(Linear(10, 20), ReLU(), Linear(20, 5)).Build(10)
	if err != nil {
		t.Fatal(err)
	}
	const first, second = 220.0, 105 // products, the bias as one each
	all := first + second + first + 2*second
	want := []Ready{{220, (first + 3*second) / all}, {0, 1}}
	if got := m.Readiness(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
