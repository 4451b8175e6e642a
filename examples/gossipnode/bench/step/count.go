package step

import (
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// pictureOperations counts the floating-point operations of the products in a model's step, for each picture. A
// multiply-add counts two. There are three products: for the outputs, for the gradient of the weights, and, except in
// the first layer, for the gradient of the inputs. Each multiplies a weight of a dense layer once, and a weight of a
// convolution once for each output pixel. Biases, ReLUs, pools, norms, the loss and the optimizer's step are timed
// but not counted.
func pictureOperations(model string, layout *tensor.Layout, shape dataset.Shape) float64 {
	if nets.ReadsText(model) {
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

// windowOperations counts those of a window of text. Each weight of a matrix is multiplied once for each byte.
// Attention multiplies each byte's numbers with those of the bytes up to it, twice. Looking up embeddings counts
// nothing.
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

// halvedBy names the weights whose outputs have half the height and width of the outputs before, due to a pool or a
// stride of two.
func halvedBy(model string) []string {
	switch model {
	case "cnn":
		return []string{"3.weight"}
	case "mobilenet-small":
		return []string{"7.weight", "15.weight", "23.weight"}
	case "resnet-small":
		return []string{"2.0.weight", "4.0.0.weight", "7.0.0.weight"}
	case "resnet18":
		return []string{"layer2.0.conv1.weight", "layer3.0.conv1.weight", "layer4.0.conv1.weight"}
	case "resnet20", "resnet110":
		return []string{"layer2.0.conv1.weight", "layer3.0.conv1.weight"}
	case "mobilenet_v2":
		return []string{"features.0.0.weight", "features.2.conv.1.0.weight", "features.4.conv.1.0.weight", "features.7.conv.1.0.weight", "features.14.conv.1.0.weight"}
	case "alexnet":
		return []string{"features.0.weight", "features.3.weight", "features.6.weight"}
	case "vgg11_bn":
		return []string{"features.4.weight", "features.8.weight", "features.15.weight", "features.22.weight"}
	case "vgg16_bn":
		return []string{"features.7.weight", "features.14.weight", "features.24.weight", "features.34.weight"}
	case "vgg19_bn":
		return []string{"features.7.weight", "features.14.weight", "features.27.weight", "features.40.weight"}
	default:
		return nil
	}
}
