package main

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// pictureOperations are the floating-point operations that the products of a step
// take for each picture: two for each multiply-add, in the outputs, the gradient of
// the weights and, but for the first layer, the gradient of the inputs. Each weight
// of a dense layer is multiplied once for that, each of a convolution once for
// every pixel. Biases, rectifiers, pools, the loss and the optimizer's step are not
// counted, though they are timed.
func pictureOperations(layout *tensor.Layout, shape dataset.Shape) float64 {
	const multiplyAdd = 2
	total, products := 0.0, 2.0
	for _, weight := range layout.Ranges() {
		switch weight.Kind {
		case tensor.Dense:
			total += multiplyAdd * products * float64(weight.Len)
		case tensor.Conv:
			total += multiplyAdd * products * float64(weight.Len*shape.Height*shape.Width)
			shape.Height, shape.Width = shape.Height/2, shape.Width/2 // the pool after it
		default:
			continue
		}
		products = 3
	}
	return total
}
