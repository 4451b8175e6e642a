package kernel

// Exp equals, within a unit in the last place,
//
//	for i := range dst { dst[i] = exp(x[i]) }
//
// with 0 for what is below the smallest normal number. NaN stays. dst may be x. Every
// CPU gives the same bits.
func Exp(dst, x []float32) { exp(dst, x[:len(dst)]) }
