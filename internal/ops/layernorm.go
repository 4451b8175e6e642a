package ops

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// LayerNorm gives the values of each row of in the mean 0 and the variance 1, then scales
// and shifts each column (Ba, Kiros and Hinton 2016). stats, two values a row, are set to
// its mean and inverse deviation. out may be in.
func LayerNorm(out, stats, in, scale, shift tensor.Vector) {
	width := len(scale)
	n := pictures("LayerNorm", len(in), width)
	wantLen("LayerNorm", len(out), len(in))
	wantLen("LayerNorm", len(shift), width)
	wantLen("LayerNorm", len(stats), 2*n)
	for i := range n {
		x, y := part(in, i, width), part(out, i, width)
		sum, squares := 0.0, 0.0
		for _, v := range x {
			sum += float64(v)
		}
		mean := sum / float64(width)
		for _, v := range x {
			d := float64(v) - mean
			squares += float64(d * d)
		}
		inverse := 1 / math.Sqrt(squares/float64(width)+normEpsilon)
		stats[2*i], stats[2*i+1] = float32(mean), float32(inverse)
		for j, v := range x {
			y[j] = (v-stats[2*i])*stats[2*i+1]*scale[j] + shift[j]
		}
	}
}

// LayerNormGradient sets below, the gradient over the input, and adds the gradients over
// scale and shift, from the input, its statistics and the gradient over the output. below
// may be errors.
func LayerNormGradient(below, addScale, addShift, stats, in, errors, scale tensor.Vector) {
	width := len(scale)
	n := pictures("LayerNormGradient", len(in), width)
	wantLen("LayerNormGradient", len(below), len(in))
	wantLen("LayerNormGradient", len(errors), len(in))
	wantLen("LayerNormGradient", len(addScale), width)
	wantLen("LayerNormGradient", len(addShift), width)
	wantLen("LayerNormGradient", len(stats), 2*n)
	for i := range n {
		x, e, d := part(in, i, width), part(errors, i, width), part(below, i, width)
		mean, inverse := stats[2*i], stats[2*i+1]
		push, turn := 0.0, 0.0
		for j, v := range e {
			normal := (x[j] - mean) * inverse
			addScale[j] += v * normal
			addShift[j] += v
			push += float64(v * scale[j])
			turn += float64(v * scale[j] * normal)
		}
		a, b := float32(push/float64(width)), float32(turn/float64(width))
		for j, v := range e {
			d[j] = inverse * (v*scale[j] - a - (x[j]-mean)*inverse*b)
		}
	}
}
