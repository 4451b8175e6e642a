package nn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/tensor"
)

// ErrModel: the layers do not make a model.
var ErrModel = errors.New("nn: no such model")

// Model has layers built for examples of one shape. It holds no parameters, never changes, and is safe for concurrent
// use.
type Model struct {
	in, out   Shape
	layers    Built
	layout    *tensor.Layout
	starts    []Start
	pass      int    // examples of a pass
	kept      int    // values that layers keep of an example
	numbered  uint64 // steps with numbers in the layers before it, if it is a stage of a model
	predicted idle.Pool[*worker]
}

// Build makes a model for examples of a shape, such as 28, 28, 1. If a layer does not fit the shape or the layer
// before, the error wraps ErrModel and names the layer.
func (s *Sequence) Build(in ...int) (*Model, error) {
	if err := Shape(in).validate(); err != nil {
		return nil, fmt.Errorf("%w: examples: %w", ErrModel, err)
	}
	layers, err := s.For(append(Shape(nil), in...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return newModel(append(Shape(nil), in...), layers, 0)
}

// newModel makes a model of layers, behind others of which so many steps have numbers.
func newModel(in Shape, layers Built, numbered uint64) (*Model, error) {
	m := &Model{in: in, out: layers.Out, layers: layers, numbered: numbered}
	var err error
	specs := make([]tensor.Spec, len(m.layers.Params))
	for i, p := range m.layers.Params {
		specs[i] = p.Spec
		m.starts = append(m.starts, p.Start)
	}
	if m.layout, err = tensor.NewLayout(specs...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m.pass, m.kept = passOf(m.layers, m.layout.Len())
	m.predicted = idle.NewPool(mostIdle, func() *worker { return m.newWorker(newRoom(m.pass, false)) })
	return m, nil
}

// mostIdle bounds the workers for Predict that are kept for their next use.
const mostIdle = 16

// Bounds of a pass. The values that its layers keep for Backward should stay in a core's cache; weights too large for
// the cache should be read once for several examples: for as many as keep half as many values as there are weights.
const (
	passValues               = 1 << 18
	fewest, several, largest = 2, 4, 256
)

// passOf is how many examples go at a time through layers with that many parameters, and how many values they keep of one.
func passOf(layers Built, parameters int) (pass, kept int) {
	one := newRoom(1, true)
	layers.Make(one)
	least := fewest
	if parameters > passValues {
		least = max(several, parameters/max(2*one.taken, 1))
	}
	return min(max(passValues/max(one.taken, 1), least), largest), one.taken
}

// In is the shape of an example.
func (m *Model) In() Shape { return append(Shape(nil), m.in...) }

// Out is the shape of the output for an example.
func (m *Model) Out() Shape { return append(Shape(nil), m.out...) }

// Layout names the parameters, as torch does.
func (m *Model) Layout() *tensor.Layout { return m.layout }

// Init returns parameters to start training from. Each layer has torch's default distribution, or that of WithStart.
// The same seed gives the same bytes on every platform, so all peers of a run start from one model.
func (m *Model) Init(seed uint64) *tensor.Params {
	p := tensor.NewParams(m.layout)
	m.InitPart(p.Vector(), seed, 0)
	return p
}

// InitPart writes to part the values that Init gives from one on, without making those of the whole model. The part begins and
// ends with ranges of the layout, as that of a stage does.
func (m *Model) InitPart(part tensor.Vector, seed uint64, from int) {
	const initial = 0x6d75726d7572 // differs from other uses that a service makes of the same seed
	rng := rand.New(rand.NewPCG(seed, initial))
	var others tensor.Vector // whose random numbers come before
	for i, start := range m.starts {
		switch r := m.layout.At(i); {
		case r.Offset >= from+len(part):
			return
		case r.Offset >= from:
			start.set(part[r.Offset-from:r.Offset-from+r.Len], rng)
		default:
			others = slices.Grow(others[:0], r.Len)[:r.Len]
			start.set(others, rng)
		}
	}
}

// Predict writes the outputs for the examples x to out, Out().Len() values for each example. It only reads params
// (usually a snapshot of a peer's), and many goroutines may call it at once. Lengths that do not fit are an error of
// the program: it panics.
func (m *Model) Predict(params, out, x tensor.Vector) {
	m.check("Predict", "params", params)
	n := m.examples("Predict", x)
	mustLen("Predict", "out", len(out), n*m.out.Len())
	w := m.worker(n)
	for from := 0; from < n; from += w.most {
		p := Pass{Examples: min(w.most, n-from), From: from, Fresh: from == 0}
		y := w.step.Forward(p, params, part(x, from, p.Examples, m.in.Len()))
		copy(part(out, from, p.Examples, m.out.Len()), y)
	}
	m.predicted.Put(w)
}

// worker returns a worker that no other goroutine uses, for a batch of n examples.
func (m *Model) worker(n int) *worker {
	w := m.predicted.Take()
	if m.layers.WholeBatch && n > w.most {
		w = m.newWorker(newRoom(n, false))
	}
	return w
}

// check panics unless v, the argument called what, has as many values as the model has parameters.
func (m *Model) check(op, what string, v tensor.Vector) {
	mustLen(op, what, len(v), m.layout.Len())
}

// examples is the number of examples in x.
func (m *Model) examples(op string, x tensor.Vector) int {
	each := m.in.Len()
	if len(x)%each != 0 {
		panic(fmt.Sprintf("nn: %s: x of %d values, want %d an example", op, len(x), each))
	}
	return len(x) / each
}

func mustLen(op, what string, got, want int) {
	if got != want {
		lengthPanic(op, what, got, want)
	}
}

func lengthPanic(op, what string, got, want int) {
	panic(fmt.Sprintf("nn: %s: %s of %d values, want %d", op, what, got, want))
}

// part returns n rows of v, each with width values, from row from on.
func part(v tensor.Vector, from, n, width int) tensor.Vector {
	return v[from*width : (from+n)*width : (from+n)*width]
}
