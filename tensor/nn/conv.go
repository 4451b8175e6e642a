package nn

import (
	"cmp"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// Conv has the less common settings of Conv2d. The zero value has torch's defaults: stride 1, no padding, one group,
// with a bias.
type Conv struct {
	// Stride is how many pixels apart neighbouring outputs are. Default: 1.
	Stride int
	// Padding is how many zeros are added on each side of a picture.
	Padding int
	// Groups is how many groups the channels are divided into; each output depends on one group only. With as many
	// groups as input and output channels, each channel has its own kernel (a depthwise convolution). Default: 1.
	Groups int
	NoBias bool
}

// Conv2d is a convolution of pictures [height width in] by kernels of kernel×kernel pixels, as torch.nn.Conv2d. Its
// parameters are weight [out in/groups kernel kernel] and bias [out]. Two cases are fast: kernels of 1×1, and kernels
// of 3×3 with padding 1, stride 1 or 2, and one group or a group for each channel.
func Conv2d(in, out, kernel int, c Conv) Layer {
	c.Stride, c.Groups = cmp.Or(c.Stride, 1), cmp.Or(c.Groups, 1)
	return conv2d{Conv: c, in: in, out: out, kernel: kernel}
}

type conv2d struct {
	Conv
	in, out, kernel int
	rectify, pool   bool // ReLU, MaxPool2d(2) follow
}

func (l conv2d) String() string { return fmt.Sprintf("Conv2d(%d, %d, %d)", l.in, l.out, l.kernel) }

// fuse includes a ReLU and a pool that follow. The maximum is then taken before bias and ReLU, with the same outputs
// for a quarter of the work.
func (l conv2d) fuse(next []Layer) (Layer, int) {
	n := 0
	for ; n < len(next); n++ {
		if _, ok := next[n].(relu); ok && !l.rectify {
			l.rectify = true
		} else if p, ok := next[n].(maxPool2d); ok && p.size == 2 && !l.pool {
			l.pool = true
		} else {
			break
		}
	}
	if n == 0 {
		return nil, 0
	}
	return l, n
}

func (l conv2d) For(in Shape) (Built, error) {
	if l.in < 1 || l.out < 1 || l.kernel < 1 || l.Padding < 0 || l.Stride < 0 || l.Groups < 0 || l.in%l.Groups != 0 || l.out%l.Groups != 0 {
		return Built{}, fmt.Errorf("want at least one channel in and one out, in groups of the same size, a kernel of at least 1, and no padding or stride below zero")
	}
	s, err := picture(in, l.in)
	if err != nil {
		return Built{}, err
	}
	across := func(n int) int { return (n+2*l.Padding-l.kernel)/l.Stride + 1 }
	out := ops.Shape{Height: across(s.Height), Width: across(s.Width), Channels: l.out}
	if s.Height+2*l.Padding < l.kernel || s.Width+2*l.Padding < l.kernel {
		return Built{}, fmt.Errorf("a picture is smaller than the kernel")
	}
	fan := l.in / l.Groups * l.kernel * l.kernel
	params := []Param{{tensor.Spec{Name: "weight", Shape: []int{l.out, l.in / l.Groups, l.kernel, l.kernel}, Kind: tensor.Conv}, fanIn(fan)}}
	if !l.NoBias {
		params = append(params, Param{tensor.Spec{Name: "bias", Shape: []int{l.out}, Kind: tensor.Bias}, fanIn(fan)})
	}
	last := out
	if l.pool {
		if out.Height < 2 || out.Width < 2 {
			return Built{}, fmt.Errorf("its outputs are smaller than the pool after it")
		}
		last = ops.Shape{Height: out.Height / 2, Width: out.Width / 2, Channels: l.out}
	}
	return Built{Out: shapeOf(last), Params: params, Work: float64(fan * l.out * out.Pixels()), Make: func(r *Room) Step {
		step := &convStep{conv2d: l, weights: fan * l.out, convolve: l.step(r, s, out)}
		if l.pool {
			step.maxima = newMaxPoolStep(r, out)
		}
		return step
	}}, nil
}

// step returns the fastest step for the convolution alone.
func (l conv2d) step(r *Room, in, out ops.Shape) Step {
	usual := l.kernel == 3 && l.Padding == 1 && l.Stride <= 2
	switch {
	case usual && l.Groups == 1:
		return newThreeByThree(r, in, l.out, l.Stride)
	case usual && l.Groups == l.in && l.in == l.out:
		return newDepthwise(r, in, l.Stride)
	case l.kernel == 1 && l.Padding == 0 && l.Stride == 1 && l.Groups == 1:
		return newLinearStep(r, linear{in: l.in, out: l.out}, in.Pixels())
	}
	return newPatchwork(r, l, in, out)
}

// picture returns the shape of an example, or an error if that is no picture with as many channels.
func picture(in Shape, channels int) (ops.Shape, error) {
	if len(in) != 3 || in[2] != channels || in[0] > ops.MaxSide || in[1] > ops.MaxSide || in[2] > ops.MaxChannels {
		return ops.Shape{}, fmt.Errorf("want pictures [height width %d], of at most %d pixels a side and %d channels", channels, ops.MaxSide, ops.MaxChannels)
	}
	return ops.Shape{Height: in[0], Width: in[1], Channels: in[2]}, nil
}

func shapeOf(s ops.Shape) Shape { return Shape{s.Height, s.Width, s.Channels} }

// convStep is a convolution with the layers fused to it.
type convStep struct {
	conv2d
	weights  int
	convolve Step
	maxima   *maxPoolStep  // nil without a pool
	y        tensor.Vector // of the last Forward
}

// Forward implements Step.
func (s *convStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	y := s.convolve.Forward(p, w[:s.weights], x)
	if s.maxima != nil {
		y = s.maxima.Forward(p, nil, y)
	}
	switch {
	case s.rectify && !s.NoBias:
		ops.AddRowsRectify(y, w[s.weights:])
	case s.rectify:
		ops.Rectify(y)
	case !s.NoBias:
		ops.AddRows(y, w[s.weights:])
	}
	s.y = y
	return y
}

// Backward implements Step.
func (s *convStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	if s.rectify {
		ops.RectifyGradient(e, s.y)
	}
	if !s.NoBias {
		p.Begin(g[s.weights:])
		ops.AddSumRows(g[s.weights:], e)
	}
	if s.maxima != nil {
		e = s.maxima.Backward(p, nil, nil, e)
	}
	return s.convolve.Backward(p, w[:s.weights], g[:s.weights], e)
}
