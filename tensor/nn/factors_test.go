package nn

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestFactorsOfLinear: the factors that Gradient tells of are those of the gradient of each Linear in a row of layers, before it tells
// that this is ready; of a batch in several passes, and of a loss, it tells of none.
func TestFactorsOfLinear(t *testing.T) {
	const examples = 6
	m, err := Sequential(Conv2d(1, 4, 3, Conv{Padding: 1}), ReLU(), Flatten(), Linear(64, 70), ReLU(), Linear(70, 8), GELU(), Residual(LinearNoBias(8, 8)), LinearNoBias(8, 3)).Build(4, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.pass = 2
	params := m.Init(1).Vector()
	grad, x, y := make(tensor.Vector, len(params)), make(tensor.Vector, 16*examples), make(tensor.Vector, examples)
	for i := range x {
		x[i] = float32(i%23)/23 - 0.4
	}
	linears := map[int][2]int{} // in and out, by the first value
	for i := range m.Layout().Count() {
		if at := m.Layout().At(i); len(at.Shape) == 2 && at.Shape[1] != 8 || at.Len == 24 {
			linears[at.Offset] = [2]int{at.Shape[1], at.Shape[0]}
		}
	}
	trainer, told, final := m.Trainer(examples, CrossEntropy()), 0, len(params)
	products := make(map[int]tensor.Vector)
	trainer.Ready = func(from int) { final = from }
	trainer.Factors = func(at int, inputs, errors tensor.Vector) {
		size, known := linears[at]
		if !known || at >= final || len(inputs) != examples*size[0] || len(errors) != examples*size[1] {
			t.Fatalf("%d inputs and %d errors for value %d, final from %d on", len(inputs), len(errors), at, final)
		}
		told++
		products[at] = make(tensor.Vector, size[0]*size[1])
		new(tensor.Multiplier).MatMul(tensor.NewMatrix(size[1], size[0], products[at]), 1, tensor.NewMatrix(examples, size[1], errors).T(), tensor.NewMatrix(examples, size[0], inputs), 0)
	}
	trainer.Gradient(params, grad, x, y)
	if told != 3 || len(linears) != 3 {
		t.Errorf("told of %d of %d layers", told, len(linears))
	}
	for at, product := range products {
		if d := math.Sqrt(tensor.SquaredDistance(product, grad[at:][:len(product)])); d > 1e-6*tensor.Norm2(product) {
			t.Errorf("the product for value %d is %g from the gradient", at, d)
		}
	}
	trainer.Loss(params, x, y)
	m.kept = 1 << 30 // too many values for all examples at once
	trainer.Gradient(params, grad, x, y)
	if told != 3 {
		t.Errorf("told of %d layers beyond those of a whole batch", told-3)
	}
}
