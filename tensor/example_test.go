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
	if err := tensor.WriteSafetensors(&file, params, map[string]string{"step": "100"}); err != nil {
		fmt.Println(err)
		return
	}
	restored := tensor.NewParams(layout)
	metadata, err := tensor.LoadSafetensors(&file, restored)
	fmt.Println(restored.Vector(), metadata["step"], err)
	// Output:
	// [0 0 0 0 0 0 0 0.5]
	// [0 0 0 0 0 0 0 0.5] 100 <nil>
}

func ExampleMomentumStep() {
	x := tensor.Vector{4}                   // minimize x²/2, whose gradient is x
	velocity := make(tensor.Vector, len(x)) // the optimizer's state
	gradient := make(tensor.Vector, len(x)) // becomes the change
	rates := tensor.MomentumRates{Rate: 0.5, Momentum: 0.5}
	for range 3 {
		copy(gradient, x)
		tensor.MomentumStep(gradient, velocity, gradient, x, rates)
		tensor.Add(x, gradient)
		fmt.Println(x)
	}
	// Output:
	// [2]
	// [0]
	// [-1]
}
