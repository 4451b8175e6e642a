package kernel

// multiplyAddPeakGo is the loop in plain Go, where a product is rounded before
// it is added.
func multiplyAddPeakGo(iterations int) float64 {
	var a, b, c, d, e, f, g, h float32
	x, y := float32(iterations%7), float32(0.5)
	for range iterations {
		a = x + float32(y*a)
		b = x + float32(y*b)
		c = x + float32(y*c)
		d = x + float32(y*d)
		e = x + float32(y*e)
		f = x + float32(y*f)
		g = x + float32(y*g)
		h = x + float32(y*h)
	}
	const accumulators, each = 8, 2
	if a+b+c+d+e+f+g+h < 0 { // never, which the compiler does not know
		return 0
	}
	return accumulators * each * float64(iterations)
}
