package kernel

import "math"

// The lower tail of the normal distribution at -u is exp(-u²/2) times a polynomial in
// 1/(1+tailRate·u) without a constant term, with an error of 1e-7 (a relative 1e-6 of the
// tail up to u = 5, and 1e-5 up to 14).
const (
	tailRate = 0.35
	tail7    = 0.046574223786592484
	tail6    = -0.1920234113931656
	tail5    = 0.22284914553165436
	tail4    = -0.00030709977727383375
	tail3    = 0.14697407186031342
	tail2    = 0.13609834015369415
	tail1    = 0.13983482122421265

	tailMost  = 14                 // beyond, the tail is 0
	rootTwoPi = 0.3989422804014327 // 1/√(2π)
)

// The hyperbolic tangent of a small x is x + x³ times a polynomial in x², with a
// relative error of 5e-9 for |x| up to 0.63.
const (
	tanhSmall = 0.625
	tanh4     = -0.005666936282068491
	tanh3     = 0.020606141537427902
	tanh2     = -0.05372999608516693
	tanh1     = 0.13331331312656403
	tanh0     = -0.33333277702331543
)

// tail returns |x|, bounded where it has no effect, exp(-x²/2) and the tail beyond |x|.
func tail(x float32) (size, density, beyond float32) {
	size = math.Float32frombits(math.Float32bits(x) & magnitudeBits)
	if size > tailMost {
		size = tailMost
	}
	density = exponential(float32(size*size)*-0.5, expLeast)
	t := 1 / (float32(size*tailRate) + 1)
	p := float32(t*tail7) + tail6
	p = float32(p*t) + tail5
	p = float32(p*t) + tail4
	p = float32(p*t) + tail3
	p = float32(p*t) + tail2
	p = float32(p*t) + tail1
	return size, density, float32(p*t) * density
}

func geluGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		size, _, beyond := tail(v)
		if v < 0 {
			v = 0
		}
		dst[i] = v - float32(size*beyond)
	}
}

func geluGradientGo(grad, x []float32) {
	x = x[:len(grad)]
	for i, v := range x {
		grad[i] *= slopeOfGELU(v)
	}
}

func slopeOfGELU(x float32) float32 {
	size, density, beyond := tail(x)
	slope := beyond - float32(size*float32(density*rootTwoPi))
	if math.Float32bits(x)&signBit == 0 {
		slope = 1 - slope
	}
	return slope
}

func addRowsGELUGo(x, slope, row []float32, rows int) {
	addRowsGo(x, row, rows)
	for i, v := range x[:rows*len(row)] {
		slope[i] = slopeOfGELU(v)
	}
	geluGo(x[:rows*len(row)], x)
}

func logistic(x float32) float32 { return 1 / (exponential(-x, expLeast) + 1) }

func siluGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = v * logistic(v)
	}
}

func siluGradientGo(grad, x []float32) {
	x = x[:len(grad)]
	for i, v := range x {
		s := logistic(v)
		grad[i] *= s * (float32(v*(1-s)) + 1)
	}
}

func sigmoidGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = logistic(v)
	}
}

func sigmoidGradientGo(grad, out []float32) {
	out = out[:len(grad)]
	for i, v := range out {
		grad[i] *= v * (1 - v)
	}
}

func tanhGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = hyperbolicTangent(v)
	}
}

func hyperbolicTangent(x float32) float32 {
	sign := math.Float32bits(x) & signBit
	size := math.Float32frombits(math.Float32bits(x) &^ signBit)
	if size < tanhSmall {
		s := float32(x * x)
		p := float32(s*tanh4) + tanh3
		p = float32(p*s) + tanh2
		p = float32(p*s) + tanh1
		p = float32(p*s) + tanh0
		return float32(float32(p*s)*x) + x
	}
	large := 1 - 2/(exponential(size+size, expLeast)+1)
	return math.Float32frombits(math.Float32bits(large) | sign)
}

func tanhGradientGo(grad, out []float32) {
	out = out[:len(grad)]
	for i, v := range out {
		grad[i] *= 1 - float32(v*v)
	}
}
