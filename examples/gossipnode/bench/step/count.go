package step

import (
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// pictureOperations are the floating-point operations that the products of a model's
// step take for each picture: two for each multiply-add, in the outputs, the gradient
// of the weights and, but for the first layer, the gradient of the inputs. Each weight
// of a dense layer is multiplied once for that, each of a convolution once for every
// pixel that comes out. Biases, rectifiers, pools, norms, the loss and the optimizer's
// step are not counted, though they are timed.
func pictureOperations(model string, layout *tensor.Layout, shape dataset.Shape) float64 {
	if model == nets.GPT {
		return windowOperations(layout, shape.Width)
	}
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

const multiplyAdd = 2

// windowOperations are those of a window of a text: each weight of a matrix is multiplied
// once for each byte, and of an attention each byte's numbers with those of the bytes up
// to it, once to look and once to hear. The rows of embeddings are looked up.
func windowOperations(layout *tensor.Layout, window int) float64 {
	total := 0.0
	for _, weight := range layout.Ranges() {
		if weight.Kind != tensor.Dense {
			continue
		}
		total += multiplyAdd * 3 * float64(weight.Len*window)
		if strings.HasSuffix(weight.Name, "in_proj_weight") {
			total += multiplyAdd * 3 * 2 * float64(window*(window+1)/2*weight.Shape[1])
		}
	}
	return total
}

// halvedBy names the weights whose outputs are half as high and wide as those of the
// weights before: a pool lies between, or the convolution has a stride of two.
func halvedBy(model string) []string {
	switch model {
	case "cnn":
		return []string{"3.weight"}
	case "mobilenet-small":
		return []string{"7.weight", "15.weight", "23.weight"}
	case "resnet-small":
		return []string{"2.0.weight", "4.0.0.weight", "7.0.0.weight"}
	default:
		return nil
	}
}
