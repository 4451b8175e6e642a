package nets

import (
	"errors"
	"fmt"
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
	return []string{"mlp", "softmax", "cnn", "mobilenet-small", "resnet-small", GPT}
}

// hiddenUnits is the width of the hidden layer of "mlp".
const hiddenUnits = 256

// GPT is the name of the language model.
const GPT = "gpt"

// ByName makes a model for examples of a shape: "softmax" is linear; "mlp" has one
// hidden layer of 256 units; "cnn" is NewCNN, "mobilenet-small" NewMobileNet, "resnet-small"
// NewResNet, and "gpt" NewGPT of default sizes for windows of a text.
func ByName(name string, shape dataset.Shape, classes int) (Model, error) {
	return Sized(name, shape, classes, GPTSizes{})
}

// Sized is ByName with sizes for a gpt, whose context is the length of the windows.
func Sized(name string, shape dataset.Shape, classes int, sizes GPTSizes) (Model, error) {
	switch name {
	case "softmax":
		return NewMLP(shape.Values(), classes)
	case "mlp":
		return NewMLP(shape.Values(), hiddenUnits, classes)
	case "cnn":
		return NewCNN(shape, classes)
	case "mobilenet-small":
		return NewMobileNet(shape, classes)
	case "resnet-small":
		return NewResNet(shape, classes)
	case GPT:
		if classes != dataset.Bytes {
			return nil, fmt.Errorf("%w: gpt learns the bytes of a text: want a data set of %d classes, have %d", ErrModel, dataset.Bytes, classes)
		}
		sizes.Context = shape.Values()
		return NewGPT(sizes)
	}
	return nil, fmt.Errorf("%w: %q: want one of %s", ErrModel, name, strings.Join(Names(), ", "))
}
