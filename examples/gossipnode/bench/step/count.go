package step

import (
	"slices"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// pictureOperations are the floating-point operations that the products of a model's
// step take for each picture: two for each multiply-add, in the outputs, the gradient
// of the weights and, but for the first layer, the gradient of the inputs. Each weight
// of a dense layer is multiplied once for that, each of a convolution once for every
// pixel that comes out. Biases, rectifiers, pools, norms, the loss and the optimizer's
// step are not counted, though they are timed.
func pictureOperations(model string, layout *tensor.Layout, shape dataset.Shape) float64 {
	const multiplyAdd = 2
	total, products := 0.0, 2.0
	for _, weight := range layout.Ranges() {
		if slices.Contains(halvedBy(model), weight.Name) {
			shape.Height, shape.Width = shape.Height/2, shape.Width/2
		}
		switch weight.Kind {
		case tensor.Dense:
			total += multiplyAdd * products * float64(weight.Len)
		case tensor.Conv:
			total += multiplyAdd * products * float64(weight.Len*shape.Height*shape.Width)
		default:
			continue
		}
		products = 3
	}
	return total
}

// halvedBy names the weights whose outputs are half as high and wide as those of the
// weights before: a pool lies between, or the convolution has a stride of two.
func halvedBy(model string) []string {
	switch model {
	case "cnn":
		return []string{"conv2.weight"}
	case "mobilenet-small":
		return []string{"block2.depthwise.weight", "block4.depthwise.weight", "block6.depthwise.weight"}
	default:
		return nil
	}
}
