package ops_test

import (
	"github.com/seed-97356399/murmuration/tensor"
	"math"

	"github.com/seed-97356399/murmuration/internal/ops"
)

// The oracle computes in float64, one value at a time, by the definitions.

// convolve returns the convolution of n pictures; depthwise ones join each channel
// with itself only.
func convolve(x, w []float64, in, out ops.Shape, stride int, depthwise bool) []float64 {
	n := len(x) / in.Len()
	y := make([]float64, n*out.Len())
	eachTap(n, in, out, stride, func(from, tap, to int) {
		for o := range out.Channels {
			if depthwise {
				y[to*out.Channels+o] += x[from*in.Channels+o] * w[tap*in.Channels+o]
				continue
			}
			for i := range in.Channels {
				y[to*out.Channels+o] += x[from*in.Channels+i] * w[(tap*in.Channels+i)*out.Channels+o]
			}
		}
	})
	return y
}

// eachTap visits all pairs of pixels, of the input and the output, that a kernel of
// 3×3 joins.
func eachTap(n int, in, out ops.Shape, stride int, visit func(from, tap, to int)) {
	for i := range n {
		for y := range out.Height {
			for x := range out.Width {
				for tap := range 9 {
					fromY, fromX := y*stride+tap/3-1, x*stride+tap%3-1
					if fromY >= 0 && fromY < in.Height && fromX >= 0 && fromX < in.Width {
						visit((i*in.Height+fromY)*in.Width+fromX, tap, (i*out.Height+y)*out.Width+x)
					}
				}
			}
		}
	}
}

// pool returns the largest of each 2×2 pixels and which of the four it is.
func pool(x []float64, in ops.Shape) (y []float64, places []byte) {
	for i := range len(x) / in.Len() {
		for r := range in.Height / 2 {
			for p := range in.Width / 2 {
				for c := range in.Channels {
					best, place := math.NaN(), 0
					for q := range 4 {
						v := x[((i*in.Height+2*r+q/2)*in.Width+2*p+q%2)*in.Channels+c]
						if q == 0 || v > best {
							best, place = v, q
						}
					}
					y, places = append(y, best), append(places, byte(place))
				}
			}
		}
	}
	return y, places
}

// normalize is the group normalization with its scale and shift.
func normalize(x, scale, shift []float64, s ops.Shape, groups int) []float64 {
	y := make([]float64, len(x))
	size := s.Channels / groups
	for i := range len(x) / s.Len() {
		for g := range groups {
			var places []int
			for p := range s.Height * s.Width {
				for c := g * size; c < (g+1)*size; c++ {
					places = append(places, i*s.Len()+p*s.Channels+c)
				}
			}
			mean, variance := 0.0, 0.0
			for _, at := range places {
				mean += x[at] / float64(len(places))
			}
			for _, at := range places {
				variance += (x[at] - mean) * (x[at] - mean) / float64(len(places))
			}
			for _, at := range places {
				c := at % s.Channels
				y[at] = (x[at]-mean)/math.Sqrt(variance+1e-5)*scale[c] + shift[c]
			}
		}
	}
	return y
}

// crossEntropy is the mean over the rows.
func crossEntropy(logits []float64, labels tensor.Vector, classes int) float64 {
	total := 0.0
	for i, label := range labels {
		sum := 0.0
		for _, v := range logits[i*classes:][:classes] {
			sum += math.Exp(v)
		}
		total += math.Log(sum) - logits[i*classes+int(label)]
	}
	return total / float64(len(labels))
}
