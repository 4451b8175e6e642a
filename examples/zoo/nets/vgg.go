package nets

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// alexDropout is the share of values that AlexNet drops before two of its layers.
const alexDropout = 0.5

// alexNet is AlexNet (Krizhevsky, Sutskever and Hinton, 2012) in its form for CIFAR, with the names of
// torchvision.models.alexnet: kernels of 3×3 pixels, the first at every second pixel, and pools of 2×2.
func alexNet(s dataset.Shape, classes int, dropout float64) []nn.Layer {
	conv := func(in, out, stride int) nn.Layer {
		return beforeReLU(nn.Conv2d(in, out, 3, nn.Conv{Stride: stride, Padding: 1}), 9*in)
	}
	features := []nn.Layer{
		conv(s.Channels, 64, 2), nn.ReLU(), nn.MaxPool2d(2),
		conv(64, 192, 1), nn.ReLU(), nn.MaxPool2d(2),
		conv(192, 384, 1), nn.ReLU(), conv(384, 256, 1), nn.ReLU(), conv(256, 256, 1), nn.ReLU(), nn.MaxPool2d(2),
	}
	const hidden = 4096
	flat := (s.Height + 1) / 2 / 8 * ((s.Width + 1) / 2 / 8) * 256
	classifier := []nn.Layer{
		nn.Dropout(dropout), beforeReLU(nn.Linear(flat, hidden), flat), nn.ReLU(),
		nn.Dropout(dropout), beforeReLU(nn.Linear(hidden, hidden), hidden), nn.ReLU(), asIs(nn.Linear(hidden, classes), hidden),
	}
	return []nn.Layer{nn.Named("features", nn.Sequential(features...)), nn.Flatten(), nn.Named("classifier", nn.Sequential(classifier...))}
}

// vgg is VGG with BatchNorm (Simonyan and Zisserman, 2015), from the number of convolutions before each of its pools,
// with the names of torchvision.models.vgg11_bn. Small pictures are one pixel after the pools, so one fully connected
// layer, named "classifier", stands for torchvision's three, most of whose 124 million parameters are for 7×7 pixels.
func vgg(convolutions [5]int, s dataset.Shape, classes int) []nn.Layer {
	var features []nn.Layer
	in := s.Channels
	for i, out := range [...]int{64, 128, 256, 512, 512} {
		for range convolutions[i] {
			features = append(features, beforeReLU(nn.Conv2d(in, out, 3, nn.Conv{Padding: 1}), 9*in), nn.BatchNorm(out), nn.ReLU())
			in = out
		}
		features = append(features, nn.MaxPool2d(2))
	}
	return []nn.Layer{nn.Named("features", nn.Sequential(features...)), nn.GlobalAvgPool(), nn.Flatten(), nn.Named("classifier", asIs(nn.Linear(in, classes), in))}
}
