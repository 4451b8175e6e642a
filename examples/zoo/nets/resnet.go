package nets

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// NewResNet makes a small residual network, like the nets of nine layers that learn CIFAR-10 in minutes: three
// convolutions of 3×3 pixels with 32, 64 and 128 channels, between which pools halve the picture, and two more
// convolutions around each of two shortcuts (He et al., 2016). BatchNorm and a ReLU follow each convolution; the
// statistics are each peer's own. Pictures have at least 8×8 pixels.
func NewResNet(shape dataset.Shape, classes int) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	conv := func(in, out int) nn.Layer {
		c := beforeReLU(nn.Conv2d(in, out, 3, nn.Conv{Padding: 1, NoBias: true}), 9*in)
		return nn.Sequential(c, nn.BatchNorm(out), nn.ReLU())
	}
	return newNetwork([]int{shape.Height, shape.Width, shape.Channels},
		conv(shape.Channels, 32), nn.MaxPool2d(2),
		conv(32, 64), nn.MaxPool2d(2),
		nn.Residual(conv(64, 64), conv(64, 64)),
		conv(64, 128), nn.MaxPool2d(2),
		nn.Residual(conv(128, 128), conv(128, 128)),
		nn.GlobalAvgPool(), nn.Flatten(), asIs(nn.Linear(128, classes), 128))
}
