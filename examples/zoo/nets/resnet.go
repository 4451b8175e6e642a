package nets

import (
	"fmt"

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

// deepResNet is a residual network (He et al., 2016) with the names of torchvision.models.resnet18, for small pictures:
// its first convolution is of 3×3 pixels and keeps their size, and no pool follows. Each number of blocks is a stage; all
// stages but the first halve the picture and double the channels, by shortcuts with a convolution ("downsample").
func deepResNet(s dataset.Shape, classes, channels int, blocks ...int) []nn.Layer {
	layers := []nn.Layer{nn.Named("conv1", conv3(s.Channels, channels, 1)), nn.Named("bn1", nn.BatchNorm(channels)), nn.ReLU()}
	in := channels
	for i, n := range blocks {
		out, stride := channels<<i, min(i+1, 2)
		stage := []nn.Layer{basicBlock(in, out, stride)}
		for range n - 1 {
			stage = append(stage, basicBlock(out, out, 1))
		}
		layers, in = append(layers, nn.Named(fmt.Sprintf("layer%d", i+1), nn.Sequential(stage...))), out
	}
	return append(layers, nn.GlobalAvgPool(), nn.Flatten(), nn.Named("fc", asIs(nn.Linear(in, classes), in)))
}

// conv3 is a convolution of 3×3 pixels before a BatchNorm.
func conv3(in, out, stride int) nn.Layer {
	return beforeReLU(nn.Conv2d(in, out, 3, nn.Conv{Stride: stride, Padding: 1, NoBias: true}), 9*in)
}

// basicBlock is two convolutions around a shortcut, and a ReLU behind it.
func basicBlock(in, out, stride int) nn.Layer {
	layers := []nn.Layer{
		nn.Named("conv1", conv3(in, out, stride)), nn.Named("bn1", nn.BatchNorm(out)), nn.ReLU(),
		nn.Named("conv2", conv3(out, out, 1)), nn.Named("bn2", nn.BatchNorm(out)),
	}
	block := nn.Residual(layers...)
	if stride > 1 || in != out {
		shrink := asIs(nn.Conv2d(in, out, 1, nn.Conv{Stride: stride, NoBias: true}), in)
		block = nn.ResidualVia(nn.Named("downsample", nn.Sequential(shrink, nn.BatchNorm(out))), layers...)
	}
	return nn.Sequential(nn.Named("", block), nn.ReLU())
}
