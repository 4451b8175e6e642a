package trainer

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestTrade: what has changed since base is added as so many steps, what the model has
// become meanwhile stays, and both vectors are handed over anew.
func TestTrade(t *testing.T) {
	run := &alone{}
	tr, r := newTrainer(t, exchanging, &optim.SGD{}, averaging.Pace{Drift: 2}, run)
	x, base := tensor.Vector{1, 2, 3, 4, 5, 6, 7}, make(tensor.Vector, values)
	r.Add(tensor.Vector{0, 0, 0, 0, 0, 0, 10}) // as an exchange may
	event, err := tr.Trade(10*time.Second, x, base, Made{Steps: 5, Samples: 12, Loss: 0.5})
	if want := (tensor.Vector{1, 2, 3, 4, 5, 6, 17}); err != nil || !slices.Equal(contents(r), want) || !slices.Equal(x, want) || !slices.Equal(base, want) {
		t.Fatalf("%v: the model is %v, x %v, base %v", err, contents(r), x, base)
	}
	length := math.Sqrt(1 + 4 + 9 + 16 + 25 + 36 + 49)
	if event.Kind != averaging.StepDone || math.Abs(event.Stride-length/5) > 1e-6 {
		t.Errorf("the machine is told %s with a stride of %g, want %g", event, event.Stride, length/5)
	}
	samples := 0
	for _, s := range run.steps {
		samples += s.Samples
	}
	if len(run.steps) != 5 || samples != 12 || run.steps[4].Loss != 0.5 {
		t.Errorf("counted %+v", run.steps)
	}
	if event, err := tr.Trade(20*time.Second, x, base, Made{Steps: 10}); err != nil || run.steps[5].Between != time.Second || event.Between != time.Second {
		t.Errorf("%v: ten steps in ten seconds are %v each, and the machine is told %v", err, run.steps[5].Between, event.Between)
	}
	if _, err := tr.Trade(20*time.Second, x, base, Made{}); err != nil || len(run.steps) != 15 {
		t.Errorf("%v: to fetch the model counts %d steps", err, len(run.steps)-15)
	}
}

// TestTradeAloneIsToTheBit: x comes back as it was given, where base + (x − base) is another number.
func TestTradeAloneIsToTheBit(t *testing.T) {
	tr, r := newTrainer(t, exchanging, &optim.SGD{}, averaging.Pace{}, &alone{})
	base := make(tensor.Vector, values)
	first := tensor.Vector{0.1, 3, -7e-8, 1, 1, 1, 1}
	next := tensor.Vector{1e-9, 1e-7, 0.3, 1, 0.5, 1 / 3., 0.7}
	x := slices.Clone(first)
	for _, want := range []tensor.Vector{first, next} {
		copy(x, want)
		if _, err := tr.Trade(0, x, base, Made{Steps: 1}); err != nil || !slices.Equal(x, want) || !slices.Equal(contents(r), want) || !slices.Equal(base, want) {
			t.Errorf("%v: %v became %v, and the model %v", err, want, x, contents(r))
		}
	}
}

// TestTradeRefusesWhole: with what is not finite or too far, nothing changes.
func TestTradeRefusesWhole(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		x, base tensor.Vector
		at      int // of the first value that is not finite, -1 if that is not why
	}{
		"NaN":         {tensor.Vector{1, 1, 1, 1, 1, nan, 1}, make(tensor.Vector, values), 5},
		"infinite":    {tensor.Vector{1, inf, 1, 1, 1, 1, 1}, make(tensor.Vector, values), 1},
		"too far":     {tensor.Vector{1, 1, 1, 1, 1, 1, 1e12}, make(tensor.Vector, values), -1},
		"overflowing": {tensor.Vector{3e38, 1, 1, 1, 1, 1, 1}, tensor.Vector{-3e38, 0, 0, 0, 0, 0, 0}, -1},
		"NaN in base": {tensor.Vector{1, 1, 1, 1, 1, 1, 1}, tensor.Vector{0, 0, 0, 0, 0, 0, nan}, 6},
	} {
		run := &alone{}
		tr, r := newTrainer(t, exchanging, &optim.SGD{}, averaging.Pace{}, run)
		x, base := slices.Clone(c.x), slices.Clone(c.base)
		_, err := tr.Trade(0, x, base, Made{Steps: 1})
		at := -1
		if f, ok := errors.AsType[*replica.NotFiniteError](err); ok {
			at = f.At
		}
		if !errors.Is(err, optim.ErrNotFinite) || c.at >= 0 && at != c.at {
			t.Errorf("%s: %v, at %d", name, err, at)
		}
		if !sameBits(x, c.x) || !sameBits(base, c.base) || !slices.Equal(contents(r), make(tensor.Vector, values)) || len(run.steps) > 0 {
			t.Errorf("%s: x is %v, base %v, the model %v", name, x, base, contents(r))
		}
	}
}

func sameBits(a, b tensor.Vector) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestTradeAfterTheEnd, or for a model that another has taken the place of.
func TestTradeAfterTheEnd(t *testing.T) {
	tr, r := newTrainer(t, pooling, &optim.SGD{}, averaging.Pace{}, &alone{})
	x, base := tensor.Vector{1, 1, 1, 1, 1, 1, 1}, make(tensor.Vector, values)
	other := tensor.Vector{7, 6, 5, 4, 3, 2, 1}
	if err := r.Replace(other); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Trade(0, x, base, Made{Steps: 1}); !errors.Is(err, ErrReplaced) || !slices.Equal(x, other) || !slices.Equal(base, other) || !slices.Equal(contents(r), other) {
		t.Errorf("%v: the model is %v, x %v, base %v", err, contents(r), x, base)
	}
	x[0] = 1
	for want, end := range map[error]func(){ErrOver: tr.Finish, ErrClosed: func() { tr.Finish(); tr.Close() }} {
		end()
		if _, err := tr.Trade(0, x, base, Made{Steps: 1}); !errors.Is(err, want) && !errors.Is(err, ErrClosed) || x[0] != 1 || base[0] != 7 {
			t.Errorf("%v, want %v: x %v, base %v", err, want, x, base)
		}
	}
}

// big is a trainer of so many values, and what its caller trades.
func big(t testing.TB, n int) (tr *Trainer, x, base tensor.Vector) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replica.New(tensor.NewParams(layout), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Replica: r, Optimizer: &optim.SGD{}, Traits: exchanging, Run: &counted{}}), make(tensor.Vector, n), make(tensor.Vector, n)
}

// TestTradesAllocateNothing whether exchanges have changed the model or not.
func TestTradesAllocateNothing(t *testing.T) {
	tr, x, base := big(t, 100_000)
	step := tensor.Vector(make([]float32, len(x)))
	step[7] = 1
	if n := testing.AllocsPerRun(20, func() {
		x[3]++
		tr.config.Replica.Add(step)
		if _, err := tr.Trade(0, x, base, Made{Steps: 8}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations a trade", n)
	}
}

// BenchmarkTrade trades 25 million values, and copies as many bytes: those of the model, of x and of base.
func BenchmarkTrade(b *testing.B) {
	const n = 25_000_000
	tr, x, base := big(b, n)
	others := []tensor.Vector{make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)}
	for _, v := range append(others, x, base) {
		for i := range v {
			v[i] = 1 // memory that is there
		}
	}
	step := make(tensor.Vector, n)
	for i := range step {
		step[i] = 1e-3
	}
	if _, err := tr.Trade(0, x, base, Made{Steps: 1}); err != nil {
		b.Fatal(err)
	}
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(3 * tensor.ValueSize * n)
		b.ReportAllocs()
		for b.Loop() {
			copy(others[0], x)
			copy(others[1], base)
			copy(others[2], step)
		}
	})
	for name, prepare := range map[string]func(){"alone": func() {}, "exchanged": func() { tr.config.Replica.Add(step) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(3 * tensor.ValueSize * n)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				prepare()
				b.StartTimer()
				x[0]++
				if _, err := tr.Trade(0, x, base, Made{Steps: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
