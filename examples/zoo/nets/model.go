package nets

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// Model computes losses and gradients over a flat vector of parameters. It
// keeps no parameters of its own, only room to compute in, so one value serves
// any number of vectors but one goroutine at a time.
//
// Vectors have the length of the Layout and batches the number of inputs and
// the classes that the model was made for; anything else is a mistake of the
// program and panics.
type Model interface {
	// Layout names the parameters.
	Layout() *tensor.Layout
	// Init fills params with the start of training. The same seed gives the same
	// bytes on every platform, so that all peers of a run start from one model.
	Init(seed uint64, params tensor.Vector)
	// Gradient overwrites grad with the gradient of the loss, which it returns:
	// the mean cross entropy over the batch, in nats. It allocates only when the
	// batch is larger than any before.
	Gradient(params tensor.Vector, batch *dataset.Batch, grad tensor.Vector) (loss float64)
	// Evaluate is the share of the set that the model classifies rightly, and its
	// mean loss over it.
	Evaluate(params tensor.Vector, set *dataset.Set) (accuracy, loss float64)
	// Probabilities are those of the classes for each of the set, one after the other.
	Probabilities(params tensor.Vector, set *dataset.Set) []float64
}

// ErrModel is the sentinel for a model that cannot be made.
var ErrModel = errors.New("nets: no such model")

// Names lists the names that ByName knows, the default first.
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

// Sized is ByName where a gpt has these sizes; its context is as long as the windows.
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
