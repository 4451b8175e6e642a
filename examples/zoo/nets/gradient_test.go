package nets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

func randomBatch(rng *rand.Rand, n, inputs, classes int) *dataset.Batch {
	b := &dataset.Batch{}
	b.Resize(n, inputs)
	for i := range b.X {
		b.X[i] = float32(rng.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = uint8(rng.IntN(classes))
	}
	return b
}

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// againstDifferences checks loss and gradient of a model on a batch against the
// oracle and its central differences: of the parameters that pick chooses for a
// range of that many, and along a random direction over all of them.
func againstDifferences(t failer, m Model, f func(oracle, plane) plane, shape dataset.Shape, batch *dataset.Batch, rng *rand.Rand, pick func(n int) []int) {
	t.Helper()
	params := make(tensor.Vector, m.Layout().Len())
	m.Init(rng.Uint64(), params)
	for i := range params { // away from the start, where biases are zero and scales one
		params[i] += 0.1 * float32(rng.NormFloat64())
	}
	grad := make(tensor.Vector, len(params))
	for i := range grad {
		grad[i] = 77 // must be overwritten
	}
	o := newOracle(m.Layout(), params)
	loss := m.Gradient(params, batch, grad)
	if want := o.loss(f, batch, shape); math.Abs(loss-want) > 1e-5*(1+want) {
		t.Fatalf("loss %v, want %v", loss, want)
	}
	const h = 1e-6
	norm := tensor.Norm2(grad)
	direction, product, length := oracle{}, 0.0, 0.0
	for _, r := range m.Layout().Ranges() {
		w, g := o[r.Name], grad[r.Offset:r.Offset+r.Len]
		direction[r.Name] = make([]float64, r.Len)
		if r.Kind == tensor.Statistic { // has a step there, and no gradient
			continue
		}
		for _, i := range pick(r.Len) {
			x := w[i]
			w[i] = x + h
			up := o.loss(f, batch, shape)
			w[i] = x - h
			down := o.loss(f, batch, shape)
			w[i] = x
			if want := (up - down) / (2 * h); math.Abs(float64(g[i])-want) > 1e-5*(1+norm) {
				t.Fatalf("gradient of %s[%d] of %v is %v, want %v", r.Name, i, r.Shape, g[i], want)
			}
		}
		for i := range w {
			d := rng.NormFloat64()
			direction[r.Name][i] = d
			product += d * float64(g[i])
			length += d * d
		}
	}
	along := func(step float64) float64 {
		moved := oracle{}
		for name, w := range o {
			for i, x := range w {
				moved[name] = append(moved[name], x+step*direction[name][i])
			}
		}
		return moved.loss(f, batch, shape)
	}
	step := h / math.Sqrt(length)
	if want := (along(step) - along(-step)) / (2 * step); math.Abs(product-want) > 1e-4*(1e-3+norm) {
		t.Fatalf("derivative along a direction is %v, want %v", product, want)
	}
}

// all picks every parameter.
func all(n int) []int {
	picked := make([]int, n)
	for i := range picked {
		picked[i] = i
	}
	return picked
}

// perceptron is what the oracle takes an MLP for.
func perceptron(hidden int) func(oracle, plane) plane {
	return func(o oracle, p plane) plane {
		for l := range hidden {
			p = rectify(o.dense(p, fmt.Sprint(2*l)))
		}
		return o.dense(p, fmt.Sprint(2*hidden))
	}
}

func TestPerceptronsGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 6), 2, 5).Draw(t, "sizes")
		n := rapid.IntRange(1, 7).Draw(t, "batch")
		rng := seeded.Rand(rapid.Uint64().Draw(t, "seed"), seeded.Order, 0)
		model, err := NewMLP(sizes...)
		if err != nil {
			t.Fatal(err)
		}
		inputs, classes := sizes[0], sizes[len(sizes)-1]
		batch := randomBatch(rng, n, inputs, classes)
		againstDifferences(t, model, perceptron(len(sizes)-2), dataset.Shape{Height: 1, Width: 1, Channels: inputs}, batch, rng, all)
	})
}

// picturesModel is one that takes pictures, with the oracle's idea of it.
type picturesModel struct {
	name   string
	singly bool // pictures of a batch do not go alone, so one is a batch
	shapes []dataset.Shape
	oracle func(oracle, plane) plane
}

func picturesModels() []picturesModel {
	usual := []dataset.Shape{{Height: 4, Width: 4, Channels: 1}, {Height: 5, Width: 7, Channels: 3}, {Height: 8, Width: 9, Channels: 2}}
	return []picturesModel{
		{"cnn", false, usual, func(o oracle, p plane) plane {
			p = halve(rectify(o.bias(o.conv(p, "0.weight", 1), "0.bias")))
			p = halve(rectify(o.bias(o.conv(p, "3.weight", 1), "3.bias")))
			return o.dense(p, "7")
		}},
		{"mobilenet-small", false, usual, func(o oracle, p plane) plane {
			p = rectify(o.norm(o.conv(p, "0.weight", 1), "1", 2))
			for i, stride := range []int{1, 2, 1, 2, 1, 2, 1} {
				at := func(n int) string { return fmt.Sprint(3 + 4*i + n) }
				p = o.pointwise(o.depthwise(p, at(0)+".weight", stride), at(1)+".weight")
				p = rectify(o.norm(p, at(2), p.c/8))
			}
			return o.dense(averaged(p), "33")
		}},
		{"resnet-small", true, []dataset.Shape{{Height: 16, Width: 17, Channels: 3}}, func(o oracle, p plane) plane {
			conv := func(p plane, name string) plane {
				p = o.conv(p, name+".0.weight", 1)
				return rectify(o.norm(p, name+".1", p.c)) // over a batch of one
			}
			around := func(p plane, name string) plane { return added(p, conv(conv(p, name+".0"), name+".1")) }
			p = halve(conv(halve(conv(p, "0")), "2"))
			p = halve(conv(around(p, "4"), "5"))
			return o.dense(averaged(around(p, "7")), "10")
		}},
	}
}

// The gradient of a batch of more pictures than go through the layers at once is
// that of central differences too.
func TestPicturesGradient(t *testing.T) {
	for _, m := range picturesModels() {
		for _, shape := range m.shapes {
			t.Run(fmt.Sprintf("%s %v", m.name, shape), func(t *testing.T) {
				model, err := ByName(m.name, shape, 5)
				if err != nil {
					t.Fatal(err)
				}
				rng := seeded.Rand(uint64(shape.Values()), seeded.Order, 0)
				batch := randomBatch(rng, 1, shape.Values(), 5)
				if m.singly {
					for range 3 { // directions over all parameters, since the oracle is slow
						againstDifferences(t, model, m.oracle, shape, batch, rng, some(rng, 0))
					}
					return
				}
				againstDifferences(t, model, m.oracle, shape, batch, rng, some(rng, 5))
				batch = randomBatch(rng, few+2, shape.Values(), 5)
				againstDifferences(t, model, m.oracle, shape, batch, rng, some(rng, 0))
			})
		}
	}
}

// some picks a few parameters of a range.
func some(rng *rand.Rand, few int) func(n int) []int {
	return func(n int) []int {
		if n <= few {
			return all(n)
		}
		picked := make([]int, few)
		for i := range picked {
			picked[i] = rng.IntN(n)
		}
		return picked
	}
}
