package step

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestGonumConvolution holds the reference's gradient of a network of two
// convolutions against differences of its own loss.
func TestGonumConvolution(t *testing.T) {
	shape := dataset.Shape{Height: 7, Width: 6, Channels: 2}
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "a.weight", Shape: []int{3, 2, 3, 3}, Kind: tensor.Conv}, tensor.Spec{Name: "a.bias", Shape: []int{3}, Kind: tensor.Bias},
		tensor.Spec{Name: "c.weight", Shape: []int{4, 3, 3, 3}, Kind: tensor.Conv}, tensor.Spec{Name: "c.bias", Shape: []int{4}, Kind: tensor.Bias},
		tensor.Spec{Name: "e.weight", Shape: []int{5, 4}}, tensor.Spec{Name: "e.bias", Shape: []int{5}, Kind: tensor.Bias})
	if err != nil {
		t.Fatal(err)
	}
	params, grad, scratch := make(tensor.Vector, layout.Len()), make(tensor.Vector, layout.Len()), make(tensor.Vector, layout.Len())
	measure.Fill(params, 1, 1)
	tensor.Scale(params, 10) // in ±½
	batch := dataset.Batch{X: make(tensor.Vector, 2*shape.Values()), Labels: []uint8{4, 1}}
	measure.Fill(batch.X, 1, 2)
	tensor.Scale(batch.X, 20)
	net := newGonumNet(layout, shape, 2)
	for range 2 { // the second has the room that the first has used
		net.gradient(params, &batch, grad)
	}
	const h = 1e-3
	for _, r := range layout.Ranges() {
		for i := r.Offset; i < r.Offset+r.Len; i += 5 {
			was := params[i]
			params[i] = was + h
			up := net.gradient(params, &batch, scratch)
			params[i] = was - h
			down := net.gradient(params, &batch, scratch)
			params[i] = was
			if want := (up - down) / (2 * h); math.Abs(float64(grad[i])-want) > 2e-3 {
				t.Errorf("gradient of %s at %d is %v, want %v", r.Name, i-r.Offset, grad[i], want)
			}
		}
	}
}

// TestHalvings shows that the layers that are said to halve a picture are there.
func TestHalvings(t *testing.T) {
	for _, model := range nets.Names() {
		layout := mustStepModel(t, model).Layout()
		for _, name := range halvedBy(model) {
			if _, ok := layout.Lookup(name); !ok {
				t.Errorf("%s has no %s", model, name)
			}
		}
	}
}

// TestNoGonumNet shows that a model of other layers has no reference, rather than a
// wrong one.
func TestNoGonumNet(t *testing.T) {
	for _, specs := range [][]tensor.Spec{
		{{Name: "n.weight", Shape: []int{4}, Kind: tensor.Norm}, {Name: "n.bias", Shape: []int{4}, Kind: tensor.Bias}},
		{{Name: "w.weight", Shape: []int{10, 784}}},
		{{Name: "p.weight", Shape: []int{4, 1, 1, 1}, Kind: tensor.Conv}, {Name: "p.bias", Shape: []int{4}, Kind: tensor.Bias}},
		{{Name: "d.weight", Shape: []int{4, 2, 3, 3}, Kind: tensor.Conv}, {Name: "d.bias", Shape: []int{4}, Kind: tensor.Bias}},
	} {
		layout, err := tensor.NewLayout(specs...)
		if err != nil {
			t.Fatal(err)
		}
		if newGonumNet(layout, stepShape("mlp"), 1) != nil {
			t.Errorf("a reference for %s", layout)
		}
	}
}

// TestPictureOperations holds the count against one by hand.
func TestPictureOperations(t *testing.T) {
	layout := func(specs ...tensor.Spec) *tensor.Layout {
		l, err := tensor.NewLayout(specs...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	dense := func(name string, in, out int) tensor.Spec { return tensor.Spec{Name: name, Shape: []int{out, in}} }
	conv := func(name string, sizes ...int) tensor.Spec {
		return tensor.Spec{Name: name, Shape: sizes, Kind: tensor.Conv}
	}
	bias := func(name string, n int) tensor.Spec {
		return tensor.Spec{Name: name, Shape: []int{n}, Kind: tensor.Bias}
	}
	for _, c := range []struct {
		name   string
		layout *tensor.Layout
		want   float64
	}{
		{"softmax", layout(dense("w", 784, 10), bias("b", 10)), 4 * 7840},
		{"mlp", layout(dense("w", 784, 256), bias("b", 256), dense("v", 256, 10), bias("c", 10)), 4*784*256 + 6*2560},
		{"cnn", layout(conv("0.weight", 16, 1, 3, 3), bias("b", 16), conv("3.weight", 32, 16, 3, 3), bias("c", 32), dense("u", 7*7*32, 10), bias("d", 10)),
			4*28*28*9*16 + 6*14*14*9*16*32 + 6*7*7*32*10},
		{"mobilenet-small", layout(conv("0.weight", 16, 1, 3, 3), conv("7.weight", 16, 1, 3, 3), conv("8.weight", 32, 16, 1, 1), dense("u", 32, 10)),
			4*28*28*9*16 + 6*14*14*9*16 + 6*14*14*16*32 + 6*32*10},
	} {
		if got := pictureOperations(c.name, c.layout, dataset.Shape{Height: 28, Width: 28, Channels: 1}); got != c.want {
			t.Errorf("%s: %v operations, want %v", c.name, got, c.want)
		}
	}
}

// TestStepOnGonum shows that the reference computes what the model does: losses and
// gradients are the same, and so are parameters after some steps.
func TestStepOnGonum(t *testing.T) {
	for _, name := range nets.Names() {
		if !onGonum(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := stepSettings{model: name, batch: 5, seed: 1}
			model := mustStepModel(t, name)
			net := newGonumNet(model.Layout(), stepShape(name), s.batch)
			if net == nil {
				t.Fatalf("no reference for %s", model.Layout())
			}
			ours := newStepWork(s, model)
			theirs := ours.clone()
			for step := range 4 {
				ours.train(model)
				net.step(theirs)
				if math.Abs(ours.loss-theirs.loss) > 1e-4*theirs.loss || ours.loss < 1 {
					t.Fatalf("step %d: the loss is %v, on gonum %v", step, ours.loss, theirs.loss)
				}
				// The optimizer of ours leaves its step where the gradient was; the
				// velocity after the first step is the gradient, after the others a sum
				// of gradients.
				nearOnGonum(t, model.Layout(), "velocity", ours.velocity, theirs.velocity)
				nearOnGonum(t, model.Layout(), "parameters", ours.params, theirs.params)
			}
		})
	}
}

func mustStepModel(t *testing.T, name string) nets.Model {
	t.Helper()
	model, err := newStepModel(stepSettings{model: name})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// TestDeepOperations holds counts against the multiply-adds of a picture of 32×32 pixels of these models.
func TestDeepOperations(t *testing.T) {
	for name, want := range map[string]struct{ all, first float64 }{
		"resnet18": {555_422_720, 9 * 3 * 64 * 1024}, "resnet20": {40_813_184, 9 * 3 * 16 * 1024},
		"vgg11_bn": {152_769_536, 9 * 3 * 64 * 1024}, "vgg16_bn": {313_201_664, 9 * 3 * 64 * 1024}, "vgg19_bn": {398_136_320, 9 * 3 * 64 * 1024},
	} {
		got := pictureOperations(name, mustStepModel(t, name).Layout(), stepShape(name))
		if operations := 6*want.all - 2*want.first; got != operations {
			t.Errorf("%s: %v operations, want %v: %.0f multiply-adds too many", name, got, operations, (got-operations)/6)
		}
	}
}
