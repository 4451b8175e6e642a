package nets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Model computes losses and gradients over a flat vector of parameters. It has no parameters, only memory for
// computing. So one model serves any number of vectors, but one goroutine at a time.
//
// Vectors have the length of the Layout, and batches the inputs and classes that the model was made for; anything
// else is an error of the program: methods panic.
type Model interface {
	// Layout names the parameters.
	Layout() *tensor.Layout
	// Init writes the initial parameters to params. The same seed gives the same bytes on every platform, so all
	// peers of a run start from one model.
	Init(seed uint64, params tensor.Vector)
	// Gradient overwrites grad with the gradient of the loss, which it returns:
	// the mean cross entropy over the batch, in nats. It allocates only when the
	// batch is larger than any before.
	Gradient(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) (loss float64)
	// OnReady has Gradient tell that grad has its final values from one on, layer by layer, the last first, while it
	// computes the others.
	OnReady(tell func(from int))
	// OnFactors has Gradient tell of the two factors of which grad has the product, for each dense layer of a batch that goes through
	// the layers as a whole: from the at-th value on.
	OnFactors(tell func(at int, inputs, errors tensor.Vector))
	// Readiness is about when it does, as shares of its work.
	Readiness() []nn.Ready
	// Evaluate returns the share of the set that the model classifies correctly, and its mean loss.
	Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64)
	// Probabilities returns the probability of each class for each example of the set, one example after the other.
	Probabilities(params tensor.Vector, set *dataset.Set) []float64
}

// ErrModel: the model cannot be made.
var ErrModel = errors.New("nets: no such model")

// Names lists the names of ByName; the default is the first.
func Names() []string {
	return []string{"mlp", "softmax", "cnn", "mobilenet-small", "resnet-small", "resnet20", "resnet110", "resnet18", "mobilenet_v2", "alexnet", "vgg11_bn", "vgg16_bn", "vgg19_bn", GPT, GRU}
}

// Deep tells whether a model is one of the large ones for pictures: it has up to 30 million parameters, and a batch goes
// through it as a whole.
func Deep(name string) bool {
	return slices.Contains([]string{"resnet20", "resnet110", "resnet18", "mobilenet_v2", "alexnet", "vgg11_bn", "vgg16_bn", "vgg19_bn"}, name)
}

// Layers are the layers that a model is made of, for what trains parts of it.
func Layers(m Model) *nn.Model { return m.(*network).model }

// GPT is the name of the language model.
const GPT = "gpt"

// ByName makes a model for examples of a shape: "softmax" is linear; "mlp" has one
// hidden layer of 256 units; "cnn" is NewCNN, "mobilenet-small" NewMobileNet, "resnet-small"
// NewResNet, "gpt" NewGPT and "gru" NewGRU of default sizes for windows of a text. The others are torchvision's models
// of these names, and the networks of 20 and 110 layers for CIFAR of He et al. (2016), with torchvision's names for
// their parameters; all are for pictures of about 32×32 pixels.
func ByName(name string, shape dataset.Shape, classes int) (Model, error) {
	return Sized(name, shape, classes, Sizes{})
}

// Sized is ByName with sizes for an mlp, or a gpt or gru, whose context is the length of the windows.
func Sized(name string, shape dataset.Shape, classes int, sizes Sizes) (Model, error) {
	switch name {
	case "softmax":
		return NewMLP(shape.Values(), classes)
	case "mlp":
		if err := sizes.Validate(); err != nil {
			return nil, err
		}
		return NewMLP(shape.Values(), sizes.WithDefaults().Hidden, classes)
	case "cnn":
		return NewCNN(shape, classes)
	case "mobilenet-small":
		return NewMobileNet(shape, classes)
	case "resnet-small":
		return NewResNet(shape, classes)
	case "resnet20":
		return newDeep(shape, classes, deepResNet(shape, classes, 16, 3, 3, 3))
	case "resnet110":
		return newDeep(shape, classes, deepResNet(shape, classes, 16, 18, 18, 18))
	case "resnet18":
		return newDeep(shape, classes, deepResNet(shape, classes, 64, 2, 2, 2, 2))
	case "mobilenet_v2":
		return newDeep(shape, classes, mobileNetV2(shape, classes, mobileDropout))
	case "alexnet":
		return newDeep(shape, classes, alexNet(shape, classes, alexDropout))
	case "vgg11_bn":
		return newDeep(shape, classes, vgg([5]int{1, 1, 2, 2, 2}, shape, classes))
	case "vgg16_bn":
		return newDeep(shape, classes, vgg([5]int{2, 2, 3, 3, 3}, shape, classes))
	case "vgg19_bn":
		return newDeep(shape, classes, vgg([5]int{2, 2, 4, 4, 4}, shape, classes))
	case GPT, GRU:
		if classes != dataset.Bytes {
			return nil, fmt.Errorf("%w: %s learns the bytes of a text: want a data set of %d classes, have %d", ErrModel, name, dataset.Bytes, classes)
		}
		if sizes.Context = shape.Values(); name == GRU {
			return NewGRU(sizes)
		}
		return NewGPT(sizes)
	}
	return nil, fmt.Errorf("%w: %q: want one of %s", ErrModel, name, strings.Join(Names(), ", "))
}
