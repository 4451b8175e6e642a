package stages

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
	"github.com/seed-97356399/murmuration/topology"
)

// lesson gives the micro-batches of a world values: a model that learns.
type lesson struct {
	whole  *nn.Model
	stages []*nn.Model
	rate   float32
	desks  map[topology.PeerID]*desk
	rng    *rand.Rand
	sums   []tensor.Vector // of the gradients of each stage's first step, in a world of one member a stage
	losses []float64
}

// desk is what a member holds.
type desk struct {
	live           tensor.Vector            // parameters that others average with
	copies         map[uint64]tensor.Vector // that it computes with, by version
	flows          map[Key]*nn.Flow
	in, out, below map[Key]tensor.Vector // of micro-batches
	errors         map[Key]tensor.Vector
	grad, sum      tensor.Vector
	added          int
}

const microBatch = 4

func newLesson(t *testing.T, cuts ...int) *lesson {
	whole, err := nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 4)).Build(8)
	if err != nil {
		t.Fatal(err)
	}
	stages, err := whole.Stages(cuts...)
	if err != nil {
		t.Fatal(err)
	}
	return &lesson{whole: whole, stages: stages, rate: 0.3, desks: map[topology.PeerID]*desk{}, rng: rand.New(rand.NewPCG(1, 9))}
}

// rows are a micro-batch: points, and which of four directions each lies nearest to.
func (l *lesson) rows(id ID) (x, y tensor.Vector) {
	h := fnv.New64a()
	h.Write([]byte(id.Source))
	return points(rand.New(rand.NewPCG(h.Sum64(), id.Number)), microBatch)
}

func points(rng *rand.Rand, n int) (x, y tensor.Vector) {
	for range n {
		row := make(tensor.Vector, 8)
		for c := range row {
			row[c] = float32(rng.NormFloat64())
		}
		scores := tensor.Vector{row[0] + row[1]*row[2], row[3] - row[4], row[5]*row[0] + row[6], row[7] - row[2]}
		x, y = append(x, row...), append(y, float32(nn.Argmax(scores)))
	}
	return x, y
}

// start is the whole model's parameters at the beginning.
func (l *lesson) start() tensor.Vector { return l.whole.Init(3).Vector() }

func (l *lesson) at(n *node) *desk {
	d := l.desks[n.name]
	if d == nil {
		from := 0
		for _, m := range l.stages[:n.stage] {
			from += m.Layout().Len()
		}
		size := l.stages[n.stage].Layout().Len()
		d = &desk{copies: map[uint64]tensor.Vector{}, flows: map[Key]*nn.Flow{}, in: map[Key]tensor.Vector{}, out: map[Key]tensor.Vector{},
			below: map[Key]tensor.Vector{}, errors: map[Key]tensor.Vector{}, grad: make(tensor.Vector, size), sum: make(tensor.Vector, size)}
		d.live = slices.Clone(l.start()[from : from+size])
		d.copies[0] = slices.Clone(d.live)
		l.desks[n.name] = d
	}
	return d
}

func (l *lesson) onwards(n *node, a Action) tensor.Vector {
	switch {
	case l == nil:
		return nil
	case n.source != nil:
		x, _ := l.rows(a.ID)
		return x
	}
	return l.at(n).out[a.At]
}

func (l *lesson) came(n *node, id Key, x tensor.Vector) {
	if l != nil {
		l.at(n).in[id] = x
	}
}

func (l *lesson) backwards(n *node, a Action) tensor.Vector {
	if l == nil || a.Answer != Done {
		return nil
	}
	return l.at(n).below[a.At]
}

func (l *lesson) errorsCame(n *node, id Key, e tensor.Vector) {
	if l != nil && n.source == nil {
		l.at(n).errors[id] = e
	}
}

func (l *lesson) release(n *node, id Key) {
	if l != nil && n.source == nil {
		d := l.at(n)
		for _, held := range []map[Key]tensor.Vector{d.in, d.out, d.below, d.errors} {
			delete(held, id)
		}
		delete(d.flows, id)
	}
}

func (l *lesson) compute(n *node, a Action) {
	if l == nil {
		return
	}
	d, m := l.at(n), l.stages[n.stage]
	params := d.copies[n.memory[a.At]]
	if d.flows[a.At] == nil {
		d.flows[a.At] = m.Flow(microBatch)
		d.out[a.At] = slices.Clone(d.flows[a.At].Forward(params, d.in[a.At], 0))
	}
	if a.Kind == ComputeForward {
		return
	}
	errors := d.errors[a.At]
	if n.stage == len(l.stages)-1 {
		_, y := l.rows(a.ID)
		errors = make(tensor.Vector, len(d.out[a.At]))
		l.losses = append(l.losses, nn.CrossEntropy().Gradient(errors, d.out[a.At], y, 1.0/microBatch)/microBatch)
	}
	d.below[a.At] = slices.Clone(d.flows[a.At].Backward(params, d.grad, slices.Clone(errors), n.stage > 0))
	tensor.Add(d.sum, d.grad)
	d.added++
}

// step makes a step, and averages with another member of the stage, as exchanges do.
func (l *lesson) step(w *world, n *node) {
	if l == nil {
		return
	}
	d := l.at(n)
	if len(l.sums) < len(l.stages) {
		l.sums = append(l.sums, slices.Clone(d.sum))
	}
	tensor.Axpy(d.live, -l.rate/float32(d.added), d.sum)
	clear(d.sum)
	d.added = 0
	var others []*node
	for _, name := range w.stages[n.stage] {
		if other := w.nodes[name]; other != n && !other.dead {
			others = append(others, other)
		}
	}
	if len(others) > 0 {
		o := l.at(others[l.rng.IntN(len(others))])
		for i := range d.live {
			mean := (d.live[i] + o.live[i]) / 2
			d.live[i], o.live[i] = mean, mean
		}
	}
	delete(d.copies, n.version-2)
	d.copies[n.version] = slices.Clone(d.live)
}

// whenJoined gives a newcomer the parameters of another member of its stage.
func (l *lesson) whenJoined(w *world, n *node) {
	for _, name := range w.stages[n.stage] {
		if other := w.nodes[name]; other != n && !other.dead {
			d := l.at(n)
			copy(d.live, l.at(other).live)
			copy(d.copies[0], d.live)
			return
		}
	}
}

// accuracy is that of the members' mean model.
func (l *lesson) accuracy(w *world) float64 {
	var params tensor.Vector
	for s, m := range l.stages {
		mean, n := make(tensor.Vector, m.Layout().Len()), 0
		for _, name := range w.stages[s] {
			if node := w.nodes[name]; !node.dead {
				tensor.Add(mean, l.at(node).live)
				n++
			}
		}
		tensor.Scale(mean, 1/float32(n))
		params = append(params, mean...)
	}
	x, y := points(rand.New(rand.NewPCG(77, 77)), 2000)
	out := make(tensor.Vector, 4*len(y))
	l.whole.Predict(params, out, x)
	right := 0
	for i, label := range y {
		if nn.Argmax(out[4*i:4*i+4]) == int(label) {
			right++
		}
	}
	return float64(right) / float64(len(y))
}

// TestTheGradientOfAPipelineIsTheWholeModels: on one route, the sum of the gradients of a step is to the bit that of the
// whole model over the same micro-batches.
func TestTheGradientOfAPipelineIsTheWholeModels(t *testing.T) {
	for _, cuts := range [][]int{nil, {1}, {2}, {1, 2}} {
		w := newWorld(t, 1, 1, 12, len(cuts)+1, even)
		w.lesson = newLesson(t, cuts...)
		w.run(2 * time.Second)
		want := make(tensor.Vector, w.lesson.whole.Layout().Len())
		grad, f := make(tensor.Vector, len(want)), w.lesson.whole.Flow(microBatch)
		errors := make(tensor.Vector, 4*microBatch)
		for i := range uint64(max(8, 2*len(w.stages)+1)) {
			x, y := w.lesson.rows(ID{Source: "source0", Number: w.nodes["source0"].source.named - w.nodes["source0"].source.counts.Came + i})
			out := f.Forward(w.lesson.start(), x, 0)
			nn.CrossEntropy().Gradient(errors, out, y, 1.0/microBatch)
			f.Backward(w.lesson.start(), grad, errors, false)
			tensor.Add(want, grad)
		}
		sums := slices.Clone(w.lesson.sums)
		slices.Reverse(sums) // the last stage steps first
		if got := slices.Concat(sums...); !slices.Equal(got, want) {
			t.Errorf("cut at %v: another gradient", cuts)
		}
	}
}

// TestAPipelineLearns: members that come and go cost it little.
func TestAPipelineLearns(t *testing.T) {
	learn := func(disturbed bool) float64 {
		w := newWorld(t, 4, 2, 24, 3, even)
		w.lesson = newLesson(t, 1, 2)
		rng := rand.New(rand.NewPCG(5, 5))
		w.run(4 * time.Second)
		for i := range 8 {
			if disturbed {
				stage := rng.IntN(3)
				alive := w.alive(stage)
				w.die(w.nodes[alive[rng.IntN(len(alive))]])
				w.run(time.Second)
				w.lesson.whenJoined(w, w.add(stage, 10+i, pass))
			} else {
				w.run(time.Second)
			}
			w.run(5 * time.Second)
		}
		return w.lesson.accuracy(w)
	}
	calm, stormy := learn(false), learn(true)
	t.Logf("accuracy %.4f, %.4f with deaths", calm, stormy)
	if calm < 0.8 || stormy < calm-0.02 {
		t.Errorf("accuracy %.4f, %.4f with deaths", calm, stormy)
	}
}
