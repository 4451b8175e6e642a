package nets

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Bounds of the sides of pictures: sides can be halved twice, and no size overflows.
const (
	minSide = 4
	maxSide = 1 << 12
)

// NewCNN makes a small convolutional network: two convolutions by 3×3 kernels, with 16 and 32 channels, each followed
// by a ReLU and the maximum of 2×2 pixels, and a fully connected layer to the classes. Pictures have at least 4×4
// pixels.
func NewCNN(shape dataset.Shape, classes int) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	around, flat := nn.Conv{Padding: 1}, shape.Height/2/2*(shape.Width/2/2)*32
	return newNetwork([]int{shape.Height, shape.Width, shape.Channels},
		beforeReLU(nn.Conv2d(shape.Channels, 16, 3, around), 9*shape.Channels), nn.ReLU(), nn.MaxPool2d(2),
		beforeReLU(nn.Conv2d(16, 32, 3, around), 9*16), nn.ReLU(), nn.MaxPool2d(2),
		nn.Flatten(), asIs(nn.Linear(flat, classes), flat))
}

// validatePictures checks the pictures and classes of a network of convolutions.
func validatePictures(s dataset.Shape, classes int) error {
	errs := []error{validateEnds(s.Values(), classes)}
	if s.Height < minSide || s.Width < minSide || s.Height > maxSide || s.Width > maxSide {
		errs = append(errs, fmt.Errorf("%w: pictures of %d by %d pixels: want %d to %d on each side", ErrModel, s.Height, s.Width, minSide, maxSide))
	}
	if s.Channels < 1 {
		errs = append(errs, fmt.Errorf("%w: pictures of %d channels: want at least 1", ErrModel, s.Channels))
	}
	return errors.Join(errs...)
}
