package nets

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// maxLayers bounds the layers of a perceptron.
const maxLayers = 64

// perceptronPass is how many pictures go through a perceptron at a time: a batch
// as a rule, since a larger product is a faster one.
const perceptronPass = 256

// NewMLP makes a multilayer perceptron from the sizes of its layers: the number of
// inputs, those of the hidden layers if any, and the number of classes. The layers
// are fully connected, with a rectifier after each but the last. Without hidden
// layers it is multinomial logistic regression.
func NewMLP(sizes ...int) (Model, error) {
	if err := validateSizes(sizes); err != nil {
		return nil, err
	}
	mul := &tensor.Multiplier{}
	last := len(sizes) - 2
	var layers []layer
	for l := range last + 1 {
		layers = append(layers, &dense{
			product: product{name: fmt.Sprintf("layer%d", l), in: sizes[l], out: sizes[l+1], lowest: l == 0, mul: mul},
			rectify: l < last,
		})
	}
	return newNetwork(sizes[0], sizes[last+1], perceptronPass, layers...)
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
