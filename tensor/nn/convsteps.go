package nn

import (
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// taps is the number of pixels of the kernels for which there is machine code.
const taps = 9

// threeByThree is a convolution by 3×3 pixels over all channels. torch stores the weights output by output, the
// machine code pixel by pixel: [out in 3 3] becomes [3 3 in out].
type threeByThree struct {
	conv          *ops.Convolution
	in            ops.Shape
	weights, sums tensor.Vector // in the order of the kernels
	x             tensor.Vector // of the last Forward
	y, below      tensor.Vector
}

func newThreeByThree(r *Room, in ops.Shape, channels, stride int) *threeByThree {
	conv := ops.NewConvolution(in, channels, stride)
	return &threeByThree{
		conv: conv, in: in, weights: make(tensor.Vector, conv.WeightLen()), sums: make(tensor.Vector, conv.WeightLen()),
		y: r.Values(conv.Out().Len()), below: r.Gradients(in.Len()),
	}
}

// Forward implements Step.
func (s *threeByThree) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	if p.Fresh {
		out, tap := s.sizes()
		for o := range out {
			for c := range s.in.Channels {
				at := c*out + o
				for _, v := range w[(o*s.in.Channels+c)*taps:][:taps] {
					s.weights[at] = v
					at += tap
				}
			}
		}
		s.conv.Load(s.weights)
	}
	s.x = x
	y := s.y[:p.Examples*s.conv.Out().Len()]
	s.conv.Forward(y, x)
	return y
}

// sizes returns the number of output channels, and the distance between the weights of two pixels of a kernel in the
// machine code's order.
func (s *threeByThree) sizes() (out, tap int) {
	out = s.conv.Out().Channels
	return out, s.in.Channels * out
}

// Backward implements Step.
func (s *threeByThree) Backward(p Pass, _, g, e tensor.Vector) tensor.Vector {
	p.Begin(s.sums)
	s.conv.AddWeightGradient(s.sums, s.x, e)
	if out, tap := s.sizes(); p.Last {
		for o := range out {
			for c := range s.in.Channels {
				at := c*out + o
				row := g[(o*s.in.Channels+c)*taps:][:taps]
				for i := range row {
					row[i] = s.sums[at]
					at += tap
				}
			}
		}
	}
	if !p.Inputs {
		return nil
	}
	below := s.below[:len(s.x)]
	s.conv.InputGradient(below, e)
	return below
}

// depthwise is a convolution by 3×3 pixels of each channel separately: [channels 1 3 3] becomes [3 3 channels].
type depthwise struct {
	conv          *ops.Depthwise
	weights, sums tensor.Vector // in the order of the kernels
	x             tensor.Vector // of the last Forward
	y, below      tensor.Vector
}

func newDepthwise(r *Room, in ops.Shape, stride int) *depthwise {
	conv := ops.NewDepthwise(in, stride)
	return &depthwise{
		conv: conv, weights: make(tensor.Vector, conv.WeightLen()), sums: make(tensor.Vector, conv.WeightLen()),
		y: r.Values(conv.Out().Len()), below: r.Gradients(in.Len()),
	}
}

// Forward implements Step.
func (s *depthwise) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	if p.Fresh {
		channels := len(w) / taps
		for i, v := range w {
			s.weights[i%taps*channels+i/taps] = v
		}
	}
	s.x = x
	y := s.y[:p.Examples*s.conv.Out().Len()]
	s.conv.Forward(y, x, s.weights)
	return y
}

// Backward implements Step.
func (s *depthwise) Backward(p Pass, _, g, e tensor.Vector) tensor.Vector {
	p.Begin(s.sums)
	s.conv.AddWeightGradient(s.sums, s.x, e)
	if channels := len(g) / taps; p.Last {
		for i := range g {
			g[i] = s.sums[i%taps*channels+i/taps]
		}
	}
	if !p.Inputs {
		return nil
	}
	below := s.below[:len(s.x)]
	s.conv.InputGradient(below, e, s.weights)
	return below
}

// patchwork is any convolution, computed as a product of matrices, one group of channels at a time: each output pixel
// is a row with the pixels that its kernel covers (Chellapilla et al., 2006).
type patchwork struct {
	conv2d
	from, to ops.Shape
	mul      *tensor.Multiplier
	patches  tensor.Vector // of one picture and group
	x        tensor.Vector // of the last Forward
	y, below tensor.Vector
}

func newPatchwork(r *Room, l conv2d, in, out ops.Shape) *patchwork {
	s := &patchwork{conv2d: l, from: in, to: out, mul: r.Multiplier(), y: r.Values(out.Len()), below: r.Gradients(in.Len())}
	s.patches = make(tensor.Vector, out.Pixels()*s.seen())
	return s
}

// seen is how many input values of a group one output depends on.
func (s *patchwork) seen() int { return s.in / s.Groups * s.kernel * s.kernel }

// group returns two matrices of one group: its weights, and its channels of an output picture.
func (s *patchwork) group(number int, w, y tensor.Vector) (weights, outputs tensor.Matrix) {
	out := s.out / s.Groups
	weights = tensor.NewMatrix(out, s.seen(), part(w, number*out, out, s.seen()))
	return weights, tensor.Matrix{Data: y[number*out:], Rows: s.to.Pixels(), Cols: out, Stride: s.out}
}

// each calls visit for each value of a group's patches, with the value's index in the patches and in the picture, or
// -1 in the padding.
func (s *patchwork) each(number int, visit func(patch, pixel int)) {
	channels, at := s.in/s.Groups, 0
	for row := range s.to.Height {
		for col := range s.to.Width {
			for c := range channels {
				for ky := range s.kernel {
					for kx := range s.kernel {
						y, x := row*s.Stride+ky-s.Padding, col*s.Stride+kx-s.Padding
						pixel := -1
						if y >= 0 && y < s.from.Height && x >= 0 && x < s.from.Width {
							pixel = (y*s.from.Width+x)*s.in + number*channels + c
						}
						visit(at, pixel)
						at++
					}
				}
			}
		}
	}
}

// fill returns the patches of a picture.
func (s *patchwork) fill(number int, picture tensor.Vector) tensor.Matrix {
	s.each(number, func(patch, pixel int) {
		if s.patches[patch] = 0; pixel >= 0 {
			s.patches[patch] = picture[pixel]
		}
	})
	return tensor.NewMatrix(s.to.Pixels(), s.seen(), s.patches)
}

// Forward implements Step.
func (s *patchwork) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	for i := range p.Examples {
		for number := range s.Groups {
			weights, outputs := s.group(number, w, part(s.y, i, 1, s.to.Len()))
			s.mul.MatMul(outputs, 1, s.fill(number, part(x, i, 1, s.from.Len())), weights.T(), 0)
		}
	}
	return s.y[:p.Examples*s.to.Len()]
}

// Backward implements Step.
func (s *patchwork) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	below := s.below[:len(s.x)]
	clear(below)
	for i := range p.Examples {
		to := part(below, i, 1, s.from.Len())
		for number := range s.Groups {
			weights, errors := s.group(number, w, part(e, i, 1, s.to.Len()))
			grad, _ := s.group(number, g, e)
			patches := s.fill(number, part(s.x, i, 1, s.from.Len()))
			s.mul.MatMul(grad, 1, errors.T(), patches, 1)
			if !p.Inputs {
				continue
			}
			s.mul.MatMul(patches, 1, errors, weights, 0)
			s.each(number, func(patch, pixel int) {
				if pixel >= 0 {
					to[pixel] += s.patches[patch]
				}
			})
		}
	}
	return below
}
