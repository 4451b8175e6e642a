package nets

import (
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// mobileDropout is the share of values that MobileNetV2 drops before its last layer.
const mobileDropout = 0.2

// mobileNetV2 is MobileNetV2 (Sandler et al., 2018) as torchvision.models.mobilenet_v2, strides included: it halves a
// picture five times.
func mobileNetV2(s dataset.Shape, classes int, dropout float64) []nn.Layer {
	const stem, last = 32, 1280
	features := []nn.Layer{nn.Sequential(rectified6(s.Channels, stem, 3, 2, 1)...)}
	in := stem
	for _, stage := range []struct{ expansion, channels, blocks, stride int }{
		{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
	} {
		for block := range stage.blocks {
			stride := 1
			if block == 0 {
				stride = stage.stride
			}
			features = append(features, invertedResidual(in, stage.channels, stage.expansion, stride))
			in = stage.channels
		}
	}
	features = append(features, nn.Sequential(rectified6(in, last, 1, 1, 1)...))
	classifier := nn.Sequential(nn.Dropout(dropout), asIs(nn.Linear(last, classes), last))
	return []nn.Layer{nn.Named("features", nn.Sequential(features...)), nn.GlobalAvgPool(), nn.Flatten(), nn.Named("classifier", classifier)}
}

// rectified6 is a convolution, its BatchNorm and a ReLU6.
func rectified6(in, out, kernel, stride, groups int) []nn.Layer {
	c := nn.Conv{Stride: stride, Padding: kernel / 2, Groups: groups, NoBias: true}
	return []nn.Layer{beforeReLU(nn.Conv2d(in, out, kernel, c), in/groups*kernel*kernel), nn.BatchNorm(out), nn.ReLU6()}
}

// invertedResidual widens the channels by an expansion, convolves each by itself, and narrows them again, with a
// shortcut where the shape stays.
func invertedResidual(in, out, expansion, stride int) nn.Layer {
	var layers []nn.Layer
	wide := in * expansion
	if expansion > 1 {
		layers = append(layers, nn.Sequential(rectified6(in, wide, 1, 1, 1)...))
	}
	layers = append(layers, nn.Sequential(rectified6(wide, wide, 3, stride, wide)...),
		asIs(nn.Conv2d(wide, out, 1, nn.Conv{NoBias: true}), wide), nn.BatchNorm(out))
	block := nn.Layer(nn.Sequential(layers...))
	if stride == 1 && in == out {
		block = nn.Residual(layers...)
	}
	return nn.Sequential(nn.Named("conv", block))
}
