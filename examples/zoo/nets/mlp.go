package nets

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor/nn"
)

// maxLayers bounds the layers of a perceptron.
const maxLayers = 64

// NewMLP makes a multilayer perceptron from the sizes of its layers: the number of inputs, those of hidden layers, if
// any, and the number of classes. The layers are fully connected, with a ReLU after each but the last. Without hidden
// layers it is multinomial logistic regression.
func NewMLP(sizes ...int) (Model, error) {
	if err := validateSizes(sizes); err != nil {
		return nil, err
	}
	var layers []nn.Layer
	last := len(sizes) - 2
	for i, n := range sizes[1 : last+1] {
		layers = append(layers, beforeReLU(nn.Linear(sizes[i], n), sizes[i]), nn.ReLU())
	}
	return newNetwork(sizes[:1], append(layers, asIs(nn.Linear(sizes[last], sizes[last+1]), sizes[last]))...)
}

func validateSizes(sizes []int) error {
	if len(sizes) < 2 || len(sizes)-1 > maxLayers {
		return fmt.Errorf("%w: sizes %v: want the inputs, the hidden layers and the classes, at most %d layers", ErrModel, sizes, maxLayers)
	}
	hidden := sizes[1 : len(sizes)-1]
	errs := []error{validateEnds(sizes[0], sizes[len(sizes)-1])}
	for _, n := range hidden {
		if n < 1 || n > maxUnits {
			errs = append(errs, fmt.Errorf("%w: hidden layers %v: want 1 to %d units each", ErrModel, hidden, maxUnits))
			break
		}
	}
	return errors.Join(errs...)
}

// validateEnds checks the number of inputs and of classes.
func validateEnds(inputs, classes int) error {
	var errs []error
	if inputs < 1 || inputs > maxUnits {
		errs = append(errs, fmt.Errorf("%w: pictures of %d values: want 1 to %d", ErrModel, inputs, maxUnits))
	}
	if classes < 1 || classes > maxClasses {
		errs = append(errs, fmt.Errorf("%w: %d classes: want 1 to %d", ErrModel, classes, maxClasses))
	}
	return errors.Join(errs...)
}
