package nets

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// minSide is the least height and width of a picture that can be halved twice.
const minSide = 4

// cnnPass is how many pictures go through a cnn at a time.
const cnnPass = 8

// NewCNN makes a small convolutional network: 16 and then 32 channels of 3×3
// kernels, each followed by a rectifier and the maximum of 2×2 pixels, and a fully
// connected layer to the classes. Pictures have at least 4×4 pixels.
//
// The maximum comes before bias and rectifier, which gives the same outputs for a
// quarter of the work.
func NewCNN(shape dataset.Shape, classes int) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	conv1 := newConvolution("conv1", ops.Shape(shape), 16)
	conv1.lowest = true
	pool1 := newMaxPool(conv1.conv.Out())
	conv2 := newConvolution("conv2", pool1.pool.Out(), 32)
	pool2 := newMaxPool(conv2.conv.Out())
	top := &dense{product: product{name: "dense", in: pool2.pool.Out().Len(), out: classes, mul: &tensor.Multiplier{}}}
	return newNetwork(shape.Values(), classes, cnnPass,
		conv1, pool1, &bias{name: "conv1", channels: 16},
		conv2, pool2, &bias{name: "conv2", channels: 32},
		top)
}

// validatePictures checks what networks of convolutions ask for.
func validatePictures(s dataset.Shape, classes int) error {
	errs := []error{validateEnds(s.Values(), classes)}
	if s.Height < minSide || s.Width < minSide || s.Height > ops.MaxSide || s.Width > ops.MaxSide {
		errs = append(errs, fmt.Errorf("%w: pictures of %d by %d pixels: want %d to %d on each side", ErrModel, s.Height, s.Width, minSide, ops.MaxSide))
	}
	if s.Channels < 1 || s.Channels > ops.MaxChannels {
		errs = append(errs, fmt.Errorf("%w: pictures of %d channels: want 1 to %d", ErrModel, s.Channels, ops.MaxChannels))
	}
	return errors.Join(errs...)
}
