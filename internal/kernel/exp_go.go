package kernel

import "math"

// The exponential of x is that of r, a polynomial, times 2^n: x = n·log 2 + r with the
// whole number n next to x/log 2. The polynomial (exp(r)-1-r)/r² has a relative error
// of 3e-9 for |r| up to 0.3475.
const (
	log2E     = 1.44269504
	wholeStep = 3 << 22 // added, it leaves a whole number in the lowest bits
	ln2High   = 0.693359375
	ln2Low    = -2.12194440e-4 // the rest: products of n and ln2High are exact

	exp4 = 0.001381422160193324
	exp3 = 0.00836889911442995
	exp2 = 0.04166840389370918
	exp1 = 0.1666651964187622
	exp0 = 0.4999999403953552

	expMost       = 88.72283   // above, the exponential overflows
	expLeast      = -87.336525 // below, it is not normal
	expNegligible = -27.631021 // log 1e-12: below, softmax has 0
	exponentPlace = 23
)

func expGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = exponential(v, expLeast)
	}
}

// exponential is exp(x), and 0 for x below least.
func exponential(x, least float32) float32 {
	t := float32(x*log2E) + wholeStep
	n := t - wholeStep
	r := x - float32(n*ln2High) - float32(n*ln2Low)
	p := float32(r*exp4) + exp3
	p = float32(p*r) + exp2
	p = float32(p*r) + exp1
	p = float32(p*r) + exp0
	p = float32(p*float32(r*r)) + r + 1
	switch {
	case !(x <= expMost):
		return x + float32(math.Inf(1))
	case x < least:
		return 0
	default:
		return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<exponentPlace)
	}
}
