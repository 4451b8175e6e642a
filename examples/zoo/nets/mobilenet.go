package nets

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// stemChannels is the number of output channels of the first convolution, groupSize the number of channels that are
// normalized together.
const (
	stemChannels = 16
	groupSize    = 8
)

// NewMobileNet makes a network like MobileNet (Howard et al., 2017) for pictures of about 32×32 pixels. It has a
// convolution, seven depthwise separable convolutions, of which three halve the picture, the mean over the remaining
// pixels, and a fully connected layer to the classes. GroupNorm and a ReLU follow each convolution over channels.
// Pictures have at least 4×4 pixels.
func NewMobileNet(shape dataset.Shape, classes int) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	conv := func(in, out, kernel, stride, groups int) nn.Layer {
		c := nn.Conv{Stride: stride, Padding: kernel / 2, Groups: groups, NoBias: true}
		return beforeReLU(nn.Conv2d(in, out, kernel, c), in/groups*kernel*kernel)
	}
	norm := func(channels int) nn.Layer { return nn.GroupNorm(channels/groupSize, channels) }
	layers := []nn.Layer{conv(shape.Channels, stemChannels, 3, 1, 1), norm(stemChannels), nn.ReLU()}
	channels := stemChannels
	for _, b := range []struct{ channels, stride int }{{32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}} {
		layers = append(layers, conv(channels, channels, 3, b.stride, channels), conv(channels, b.channels, 1, 1, 1), norm(b.channels), nn.ReLU())
		channels = b.channels
	}
	layers = append(layers, nn.GlobalAvgPool(), nn.Flatten(), asIs(nn.Linear(channels, classes), channels))
	return newNetwork([]int{shape.Height, shape.Width, shape.Channels}, layers...)
}
