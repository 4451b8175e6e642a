package tensor_test

import (
	"bytes"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// A service lays out its model, lets its own code use the named ranges, and
// keeps the model in a file that other tools can read.
func Example() {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weight", Shape: []int{2, 3}},
		tensor.Spec{Name: "bias", Shape: []int{2}, Kind: tensor.Bias},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	params := tensor.NewParams(layout)
	bias, _ := params.Tensor("bias")
	bias[1] = 0.5
	fmt.Println(params.Vector())

	var file bytes.Buffer
	if err := params.WriteSafetensors(&file, map[string]string{"step": "100"}); err != nil {
		fmt.Println(err)
		return
	}
	restored := tensor.NewParams(layout)
	metadata, err := restored.LoadSafetensors(&file)
	fmt.Println(restored.Vector(), metadata["step"], err)
	// Output:
	// [0 0 0 0 0 0 0 0.5]
	// [0 0 0 0 0 0 0 0.5] 100 <nil>
}

// Two peers meet: each adds or subtracts the same difference, so that their sum
// stays what it was.
func ExampleScaledDifference() {
	a, b := tensor.Vector{1, 2, 3}, tensor.Vector{3, 2, 7}
	d := make(tensor.Vector, len(a))
	tensor.ScaledDifference(d, 0.5, a, b)
	tensor.Sub(a, d)
	tensor.Add(b, d)
	fmt.Println(a, b)
	// Output: [2 2 5] [2 2 5]
}

func ExampleMomentumRates_Delta() {
	x := tensor.Vector{4}                   // minimize x²/2, whose gradient is x
	velocity := make(tensor.Vector, len(x)) // the optimizer's state
	gradient := make(tensor.Vector, len(x)) // becomes the change
	rates := tensor.MomentumRates{Rate: 0.5, Momentum: 0.5}
	for range 3 {
		copy(gradient, x)
		rates.Delta(gradient, velocity, gradient, x)
		tensor.Add(x, gradient)
		fmt.Println(x)
	}
	// Output:
	// [2]
	// [0]
	// [-1]
}
