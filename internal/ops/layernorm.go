package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// LayerNorm shifts and scales the values of each row of in to mean 0 and variance 1, then scales and shifts each
// column (Ba, Kiros and Hinton 2016). It sets means and inverses, one value for each row, to the row's mean and
// 1/deviation. out may be in.
func LayerNorm(out, means, inverses, in, scale, shift tensor.Vector) {
	n := pictures("LayerNorm", len(in), len(scale))
	wantLen("LayerNorm", len(out), len(in))
	wantLen("LayerNorm", len(shift), len(scale))
	wantLen("LayerNorm", len(means), n)
	wantLen("LayerNorm", len(inverses), n)
	kernel.LayerNorm(out, means, inverses, in, scale, shift, normEpsilon)
}

// LayerNormGradient sets below, the gradient over the input, and adds the gradients over
// scale and shift, from the input, its statistics and the gradient over the output. below
// may be errors.
func LayerNormGradient(below, addScale, addShift, means, inverses, in, errors, scale tensor.Vector) {
	n := pictures("LayerNormGradient", len(in), len(scale))
	wantLen("LayerNormGradient", len(below), len(in))
	wantLen("LayerNormGradient", len(errors), len(in))
	wantLen("LayerNormGradient", len(addScale), len(scale))
	wantLen("LayerNormGradient", len(addShift), len(scale))
	wantLen("LayerNormGradient", len(means), n)
	wantLen("LayerNormGradient", len(inverses), n)
	kernel.LayerNormGradient(below, addScale, addShift, errors, in, means, inverses, scale)
}
