package nn_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// through takes a batch through stages, forward and back, and returns the loss's sum, the outputs and all gradients. Another
// micro-batch is on its way in each stage meanwhile.
func through(t *testing.T, stages []*nn.Model, params, x, y tensor.Vector, seed uint64) (float64, tensor.Vector, tensor.Vector) {
	t.Helper()
	var flows, others []*nn.Flow
	from, at, rng := 0, x, rand.New(rand.NewPCG(9, 9))
	for _, m := range stages {
		f := m.Flow(len(x) / stages[0].In().Len())
		other, own := f.Another(), params[from:from+m.Layout().Len()]
		in := normal(rng, len(at))
		at = slices.Clone(f.Forward(own, at, seed))
		other.Forward(own, in, seed+1)
		flows, others, from = append(flows, f), append(others, other), from+m.Layout().Len()
	}
	out, errors, grad := slices.Clone(at), make(tensor.Vector, len(at)), make(tensor.Vector, len(params))
	for i := range grad {
		grad[i] = float32(math.NaN()) // is overwritten
	}
	loss := nn.MeanSquare().Gradient(errors, at, y, 1/float64(len(y)))
	for i := len(stages) - 1; i >= 0; i-- {
		from -= stages[i].Layout().Len()
		to := from + stages[i].Layout().Len()
		others[i].Backward(params[from:to], make(tensor.Vector, to-from), normal(rng, len(errors)), i > 0)
		errors = flows[i].Backward(params[from:to], grad[from:to], errors, i > 0)
	}
	return loss, out, grad
}

// sameThroughStages holds every cut in two, and the cut between all parts, against the whole.
func sameThroughStages(t *testing.T, m *nn.Model, params, x, y tensor.Vector) {
	t.Helper()
	loss, out, grad := through(t, []*nn.Model{m}, params, x, y, 5)
	all := make([]int, len(m.Parts())-1)
	cuts := [][]int{all}
	for i := range all {
		all[i] = i + 1
		cuts = append(cuts, []int{i + 1})
	}
	for _, c := range cuts {
		stages, err := m.Stages(c...)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range stages {
			for _, r := range s.Layout().Ranges() {
				names = append(names, r.Name)
			}
		}
		for i, r := range m.Layout().Ranges() {
			if names[i] != r.Name {
				t.Fatalf("cut at %v: parameter %d is %s, in the whole %s", c, i, names[i], r.Name)
			}
		}
		l, o, g := through(t, stages, params, x, y, 5)
		if l != loss || !slices.Equal(o, out) || !slices.Equal(g, grad) {
			t.Errorf("cut at %v: loss %v, whole %v; outputs equal %t, gradients equal %t", c, l, loss, slices.Equal(o, out), slices.Equal(g, grad))
		}
	}
}

// Whatever layers follow each other, a pipeline computes what the whole model does, to the bit, and that is what a
// Trainer computes.
func TestStagesAreTheModel(t *testing.T) {
	for seed := range *models / 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := draw{rand.New(rand.NewPCG(seed, 12)), 2}
			shapes := [][]int{{3 + d.IntN(6)}, {1 + d.IntN(9), 3 + d.IntN(6)}, {3 + d.IntN(6), 3 + d.IntN(6), 1 + d.IntN(5)}}
			in := shapes[d.IntN(3)]
			nodes, _ := d.stack(in, true)
			more, _ := d.stack(in, false)
			m := built(t, in, layersOf(append(nodes, more...))...)
			examples := 1 + d.IntN(5)
			x, y, params := normal(d.Rand, examples*m.In().Len()), normal(d.Rand, examples*m.Out().Len()), m.Init(seed).Vector()
			sameThroughStages(t, m, params, x, y)
			_, _, grad := through(t, []*nn.Model{m}, params, x, y, 5)
			want := make(tensor.Vector, len(params))
			m.Trainer(examples, nn.MeanSquare()).Gradient(params, want, x, y)
			if off := math.Sqrt(tensor.SquaredDistance(grad, want)); off > 1e-4*max(1, math.Sqrt(tensor.SquaredDistance(want, make(tensor.Vector, len(want))))) {
				t.Errorf("the gradient is %v from a Trainer's", off)
			}
		})
	}
}

func TestStagesDropTheSameValues(t *testing.T) {
	m := built(t, []int{20}, nn.Linear(20, 30), nn.ReLU(), nn.Dropout(0.5), nn.Sequential(nn.Linear(30, 30), nn.Dropout(0.3)), nn.Linear(30, 4))
	rng := rand.New(rand.NewPCG(1, 1))
	sameThroughStages(t, m, m.Init(1).Vector(), normal(rng, 3*20), normal(rng, 3*4))
	_, one, _ := through(t, []*nn.Model{m}, m.Init(1).Vector(), make(tensor.Vector, 60), make(tensor.Vector, 12), 1)
	_, other, _ := through(t, []*nn.Model{m}, m.Init(1).Vector(), make(tensor.Vector, 60), make(tensor.Vector, 12), 2)
	if slices.Equal(one, other) {
		t.Error("another seed drops the same values")
	}
}

func TestPartsAndCuts(t *testing.T) {
	m := built(t, []int{8, 8, 3}, nn.Sequential(nn.Conv2d(3, 4, 3, nn.Conv{Padding: 1}), nn.ReLU(), nn.MaxPool2d(2)), nn.Flatten(), nn.Linear(64, 10), nn.ReLU())
	var names []string
	for _, p := range m.Parts() {
		names = append(names, fmt.Sprint(p.Name, " ", p.Out, " ", p.Params))
	}
	if want := []string{"0.0.Conv2d(3, 4, 3) [4 4 4] 112", "2.Linear(64, 10) [10] 650"}; !slices.Equal(names, want) {
		t.Errorf("parts %q", names)
	}
	for _, cuts := range [][]int{{0}, {2, 1}, {1, 1}, {9}, {-1}} {
		if _, err := m.Stages(cuts...); !errors.Is(err, nn.ErrModel) {
			t.Errorf("cuts %v: %v", cuts, err)
		}
	}
	for _, examples := range []int{0, 3} {
		if told := fmt.Sprint(panicked(func() { m.Flow(2).Forward(m.Init(1).Vector(), make(tensor.Vector, examples*m.In().Len()), 1) })); told != fmt.Sprintf("nn: Forward: want 1 to 2 examples, got %d", examples) {
			t.Errorf("%d examples: %s", examples, told)
		}
	}
	if allocs := testing.AllocsPerRun(5, flowing(m)); allocs != 0 {
		t.Errorf("a micro-batch allocates %v times", allocs)
	}
}

// panicked returns what a function panics with.
func panicked(do func()) (told any) {
	defer func() { told = recover() }()
	do()
	return nil
}

// flowing takes one micro-batch after the other through a model.
func flowing(m *nn.Model) func() {
	f, params := m.Flow(4), m.Init(1).Vector()
	x, grad, errors := make(tensor.Vector, 4*m.In().Len()), make(tensor.Vector, len(params)), make(tensor.Vector, 4*m.Out().Len())
	return func() {
		f.Forward(params, x, 1)
		f.Backward(params, grad, errors, true)
	}
}

// slowest is the time of the slowest stage or link, as a reader would compute it; infinite beyond the memory.
func slowest(costs []nn.Cost, cuts []int, link, memory float64) float64 {
	worst, from := 0.0, 0
	for _, to := range append(slices.Clone(cuts), len(costs)) {
		seconds, held := 0.0, 0.0
		for _, c := range costs[from:to] {
			seconds, held = seconds+c.Seconds, held+c.Memory
		}
		if memory > 0 && held > memory {
			return math.Inf(1)
		}
		if worst = max(worst, seconds); to < len(costs) && link > 0 {
			worst = max(worst, costs[to-1].Across/link)
		}
		from = to
	}
	return worst
}

// everyCut calls visit with all ways to cut n parts into stages.
func everyCut(n, stages, from int, cuts []int, visit func([]int)) {
	if stages == 1 {
		visit(cuts)
		return
	}
	for at := from + 1; at <= n-stages+1; at++ {
		everyCut(n, stages-1, at, append(slices.Clone(cuts), at), visit)
	}
}

// TestSplitIsTheBest tries all cuts of a few parts.
func TestSplitIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(0, 10)
		var costs []nn.Cost
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			costs = append(costs, nn.Cost{Seconds: number.Draw(t, "seconds"), Across: number.Draw(t, "across"), Memory: number.Draw(t, "memory")})
		}
		stages := rapid.IntRange(1, len(costs)).Draw(t, "stages")
		link, memory := rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "link"), rapid.SampledFrom([]float64{0, 8, 20}).Draw(t, "limit")
		best := math.Inf(1)
		everyCut(len(costs), stages, 0, nil, func(cuts []int) { best = min(best, slowest(costs, cuts, link, memory)) })
		cuts, err := nn.Split(costs, stages, link, memory)
		if math.IsInf(best, 1) {
			if !errors.Is(err, nn.ErrSplit) {
				t.Fatalf("no split fits, found %v, %v", cuts, err)
			}
			return
		}
		if got := slowest(costs, cuts, link, memory); err != nil || math.Abs(got-best) > 1e-9 {
			t.Fatalf("cuts %v take %v, the best %v: %v", cuts, got, best, err)
		}
	})
}

func TestSplitRefuses(t *testing.T) {
	costs := []nn.Cost{{Seconds: 1, Memory: 5}, {Seconds: 1, Memory: 7}, {Seconds: 1, Memory: 2}}
	for _, c := range []struct {
		stages int
		costs  []nn.Cost
	}{{0, costs}, {4, costs}, {1, nil}, {1, []nn.Cost{{Seconds: math.NaN()}}}, {1, []nn.Cost{{Across: -1}}}, {1, []nn.Cost{{Memory: math.Inf(1)}}}} {
		if _, err := nn.Split(c.costs, c.stages, 1, 0); !errors.Is(err, nn.ErrSplit) {
			t.Errorf("%d stages of %v: %v", c.stages, c.costs, err)
		}
	}
	if _, err := nn.Split(costs, 2, 0, 8); err == nil || err.Error() != "nn: the model cannot be split so: 2 stages of at most 8 bytes: want stages of 9, or more of them" {
		t.Error(err)
	}
}
