package nets

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// mobileNetPass is how many pictures go through a mobilenet at a time.
const mobileNetPass = 8

// stemChannels is what the first convolution makes of the colours.
const stemChannels = 16

// block is a depthwise convolution with a stride, then a pointwise one to so many
// channels.
type block struct{ channels, stride int }

// mobileNetBlocks are those of "mobilenet-small".
func mobileNetBlocks() []block {
	return []block{{32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}}
}

// NewMobileNet makes a network in the manner of MobileNet (Howard et al., 2017)
// for pictures of about 32×32 pixels: a convolution, seven depthwise separable ones
// of which three halve the picture, the mean over the pixels that are left, and a
// fully connected layer to the classes. GroupNorm and a rectifier follow each
// convolution over channels. Pictures have at least 4×4 pixels.
func NewMobileNet(shape dataset.Shape, classes int) (Model, error) {
	if err := validatePictures(shape, classes); err != nil {
		return nil, err
	}
	mul := &tensor.Multiplier{}
	stem := newConvolution("stem", ops.Shape(shape), stemChannels)
	stem.lowest = true
	s := stem.conv.Out()
	layers := []layer{stem, newNorm("stem.norm", s)}
	for i, b := range mobileNetBlocks() {
		name := fmt.Sprintf("block%d", i+1)
		deep := newDepthwise(name+".depthwise", s, b.stride)
		s = deep.conv.Out()
		wide := &pointwise{product{name: name + ".pointwise", in: s.Channels, out: b.channels, mul: mul}}
		s.Channels = b.channels
		layers = append(layers, deep, wide, newNorm(name+".norm", s))
	}
	top := &dense{product: product{name: "dense", in: s.Channels, out: classes, mul: mul}}
	layers = append(layers, &average{in: s}, top)
	return newNetwork(shape.Values(), classes, mobileNetPass, layers...)
}
