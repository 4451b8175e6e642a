package nn_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

var models = flag.Uint64("models", 400, "how many random models are held against their layers")

// node is a layer of a random model, with what it is made of, if it is made of others.
type node struct {
	layer    nn.Layer
	children []node
	join     func(n node, o *oracle, x tensor.Vector, in []int) (tensor.Vector, []int)
}

// oracle computes a model layer by layer: each is a model of its own, in memory of its own, so
// that nothing is fused, kept or written over.
type oracle struct {
	t        *testing.T
	params   tensor.Vector // of the layers that are still to come
	examples int
}

func (o *oracle) predict(n node, x tensor.Vector, in []int) (tensor.Vector, []int) {
	if n.join != nil {
		return n.join(n, o, x, in)
	}
	m := built(o.t, in, n.layer)
	y := make(tensor.Vector, o.examples*m.Out().Len())
	m.Predict(o.params[:m.Layout().Len()], y, x)
	o.params = o.params[m.Layout().Len():]
	return y, m.Out()
}

func inTurn(n node, o *oracle, x tensor.Vector, in []int) (tensor.Vector, []int) {
	for _, c := range n.children {
		x, in = o.predict(c, x, in)
	}
	return x, in
}

func addedTo(n node, o *oracle, x tensor.Vector, in []int) (tensor.Vector, []int) {
	y, out := inTurn(n, o, x, in)
	y = slices.Clone(y)
	for i := range y {
		y[i] += x[i]
	}
	return y, out
}

func bothAdded(n node, o *oracle, x tensor.Vector, in []int) (tensor.Vector, []int) {
	y, out := o.predict(n.children[0], x, in)
	via, _ := o.predict(n.children[1], x, in)
	y = slices.Clone(y)
	for i := range y {
		y[i] += via[i]
	}
	return y, out
}

func sideBySide(n node, o *oracle, x tensor.Vector, in []int) (tensor.Vector, []int) {
	var (
		parts  []tensor.Vector
		widths []int
		width  int
		out    []int
	)
	for _, c := range n.children {
		var y tensor.Vector
		y, out = o.predict(c, x, in)
		parts, widths, width = append(parts, y), append(widths, out[len(out)-1]), width+out[len(out)-1]
	}
	var y tensor.Vector
	for row := range len(parts[0]) / widths[0] {
		for i, part := range parts {
			y = append(y, part[row*widths[i]:(row+1)*widths[i]]...)
		}
	}
	out = slices.Clone(out)
	out[len(out)-1] = width
	return y, out
}

// draw makes random layers.
type draw struct {
	*rand.Rand
	depth int // of what is made of others
}

// stack draws layers for inputs of a shape, which their outputs have too if they are to keep it.
func (d draw) stack(in []int, keep bool) (all []node, out []int) {
	out = in
	for range 1 + d.IntN(3) {
		var n node
		n, out = d.node(out, keep)
		all = append(all, n)
	}
	return all, out
}

// String tells a layer with its parts.
func (n node) String() string {
	if n.join == nil {
		return fmt.Sprint(n.layer)
	}
	return fmt.Sprintf("%v%v", n.layer, n.children)
}

func layersOf(nodes []node) (all []nn.Layer) {
	for _, n := range nodes {
		all = append(all, n.layer)
	}
	return all
}

func (d draw) node(in []int, keep bool) (node, []int) {
	if d.depth > 0 && d.IntN(3) == 0 {
		return d.composite(in, keep)
	}
	if d.IntN(3) == 0 {
		all := []nn.Layer{nn.ReLU(), nn.ReLU6(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Dropout(0)}
		return node{layer: all[d.IntN(len(all))]}, in
	}
	switch len(in) {
	case 3:
		return d.ofPictures(in, keep)
	case 2:
		return d.ofSequences(in, keep)
	}
	if keep {
		return node{layer: nn.Linear(in[0], in[0])}, in
	}
	width := 3 + d.IntN(9)
	return node{layer: nn.Linear(in[0], width)}, []int{width}
}

func (d draw) composite(in []int, keep bool) (node, []int) {
	inner := draw{d.Rand, d.depth - 1}
	switch kind := d.IntN(4); {
	case kind == 0 && !keep:
		one, wide := inner.wide(in)
		two, wider := inner.wide(in)
		out := slices.Clone(in)
		out[len(out)-1] = wide + wider
		return node{layer: nn.Concat(one.layer, two.layer), children: []node{one, two}, join: sideBySide}, out
	case kind == 1:
		children, out := inner.stack(in, keep)
		return node{layer: nn.Checkpoint(layersOf(children)...), children: children, join: inTurn}, out
	case kind == 2:
		children, out := inner.stack(in, keep)
		return node{layer: nn.Sequential(layersOf(children)...), children: children, join: inTurn}, out
	case kind == 3 && d.IntN(2) == 0:
		shortcut, _ := inner.stack(in, true)
		via := node{layer: nn.Sequential(layersOf(shortcut)...), children: shortcut, join: inTurn}
		children, _ := inner.stack(in, true)
		main := node{layer: nn.Sequential(layersOf(children)...), children: children, join: inTurn}
		return node{layer: nn.ResidualVia(via.layer, layersOf(children)...), children: []node{main, via}, join: bothAdded}, in
	default:
		children, _ := inner.stack(in, true)
		return node{layer: nn.Residual(layersOf(children)...), children: children, join: addedTo}, in
	}
}

// wide is a branch of a Concat: it may change the last dimension only.
func (d draw) wide(in []int) (node, int) {
	last, width := in[len(in)-1], 1+d.IntN(6)
	children, _ := d.stack(in, true)
	first := node{layer: nn.Linear(last, width)}
	if len(in) == 3 {
		first.layer = nn.Conv2d(last, width, 1, nn.Conv{})
	}
	children = append(children, first)
	return node{layer: nn.Sequential(layersOf(children)...), children: children, join: inTurn}, width
}

func (d draw) ofSequences(in []int, keep bool) (node, []int) {
	places, width := in[0], in[1]
	switch d.IntN(5) {
	case 0:
		return node{layer: nn.LayerNorm(width)}, in
	case 1:
		return node{layer: nn.Positions(places, width)}, in
	case 2:
		heads := 1
		if width%2 == 0 {
			heads = 2
		}
		return node{layer: nn.CausalSelfAttention(width, heads, d.IntN(2) == 0)}, in
	}
	out := width
	if !keep {
		out = 3 + d.IntN(9)
	}
	if d.IntN(3) == 0 {
		return node{layer: nn.GRU(width, out)}, []int{places, out}
	}
	return node{layer: nn.Linear(width, out)}, []int{places, out}
}

func (d draw) ofPictures(in []int, keep bool) (node, []int) {
	high, wide, channels := in[0], in[1], in[2]
	switch kind := d.IntN(6); {
	case kind == 0 && !keep && min(high, wide) >= 4:
		pools := []nn.Layer{nn.MaxPool2d(2), nn.AvgPool2d(2)}
		return node{layer: pools[d.IntN(2)]}, []int{high / 2, wide / 2, channels}
	case kind == 1:
		return node{layer: nn.GroupNorm(1, channels)}, in
	case kind == 2 && !keep:
		return node{layer: nn.Flatten()}, []int{high * wide * channels}
	case kind == 3 && !keep:
		return node{layer: nn.GlobalAvgPool()}, []int{1, 1, channels}
	case kind == 4:
		return node{layer: nn.Conv2d(channels, channels, 3, nn.Conv{Padding: 1, Groups: channels})}, in
	}
	c, out := nn.Conv{Padding: 1, NoBias: d.IntN(2) == 0}, channels
	if !keep {
		out, c.Stride = 1+d.IntN(6), 1+d.IntN(2)
		high, wide = (high+c.Stride-1)/c.Stride, (wide+c.Stride-1)/c.Stride
	}
	return node{layer: nn.Conv2d(channels, out, 3, c)}, []int{high, wide, out}
}

// TestRandomModelsAreTheirLayers: whatever layers follow each other, a model predicts what its
// layers do one by one, its loss is the one that Gradient has seen, and along its gradient the
// loss falls as that says.
func TestRandomModelsAreTheirLayers(t *testing.T) {
	for seed := range *models {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := draw{rand.New(rand.NewPCG(seed, 11)), 2}
			shapes := [][]int{{3 + d.IntN(6)}, {1 + d.IntN(9), 3 + d.IntN(6)}, {3 + d.IntN(6), 3 + d.IntN(6), 1 + d.IntN(5)}}
			in := shapes[d.IntN(3)]
			nodes, _ := d.stack(in, false)
			more, _ := d.stack(in, true)
			nodes = append(more, nodes...)
			m := built(t, in, layersOf(nodes)...)
			t.Logf("%v: %v", in, nodes)
			randomModel(t, m, d, func(params, x tensor.Vector, examples int) tensor.Vector {
				y, _ := inTurn(node{children: nodes}, &oracle{t, params, examples}, x, in)
				return y
			})
		})
	}
}

func randomModel(t *testing.T, m *nn.Model, d draw, plainly func(params, x tensor.Vector, examples int) tensor.Vector) {
	examples := 1 + d.IntN(9)
	x, y := normal(d.Rand, examples*m.In().Len()), normal(d.Rand, examples*m.Out().Len())
	params := m.Init(d.Uint64()).Vector()
	for i := range params {
		params[i] += float32(d.NormFloat64()) * 0.05
	}
	before := []tensor.Vector{slices.Clone(x), slices.Clone(y), slices.Clone(params)}
	out := make(tensor.Vector, len(y))
	m.Predict(params, out, x)
	want := plainly(params, x, examples)
	for i, v := range out {
		if math.Abs(float64(v-want[i])) > 1e-4*max(1, math.Abs(float64(want[i]))) {
			t.Fatalf("output %d is %v, layer by layer %v", i, v, want[i])
		}
	}
	trainer, grad := m.Trainer(1+d.IntN(examples), nn.MeanSquare()), make(tensor.Vector, len(params))
	loss := trainer.Gradient(params, grad, x, y)
	if other := trainer.Loss(params, x, y); math.Abs(loss-other) > 1e-6*max(1, loss) {
		t.Errorf("loss %v, Gradient's %v", other, loss)
	}
	again := make(tensor.Vector, len(params))
	if trainer.Split(2); trainer.Gradient(params, again, x, y) != loss || !slices.Equal(grad, again) {
		t.Error("another gradient of the same batch, by two goroutines")
	}
	for i, v := range []tensor.Vector{x, y, params} {
		if !slices.Equal(v, before[i]) {
			t.Fatal("an argument has changed")
		}
	}
	if len(params) > 0 {
		alongGradient(t, trainer, params, grad, x, y)
	}
}

// alongGradient holds the length of a gradient against what the loss loses in its direction.
func alongGradient(t *testing.T, trainer *nn.Trainer, params, grad, x, y tensor.Vector) {
	t.Helper()
	length := tensor.Norm2(grad)
	if length < 1e-3 {
		return
	}
	moved := make(tensor.Vector, len(params))
	at := func(h float64) float64 {
		for i := range moved {
			moved[i] = params[i] + float32(h/length*float64(grad[i]))
		}
		return trainer.Loss(moved, x, y)
	}
	off := math.Inf(1)
	for _, h := range []float64{1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5} { // some of which a rectifier may bend
		off = min(off, math.Abs((at(h)-at(-h))/(2*h)-length)/max(length, 0.1))
	}
	if off > 0.02 {
		t.Errorf("along a gradient of length %v the loss changes by %v of that less or more", length, off)
	}
}
