package kernel

// FP16Encode writes the IEEE 754 half-precision code of each value, two bytes in
// little-endian order, rounded to nearest, ties to even. It equals
//
//	for i := range x { put16(dst[2*i:], toHalf(x[i])) }
//
// A value beyond the largest finite half by half a step (65520) becomes infinite;
// NaN stays NaN, with its upper payload bits and made quiet. dst holds 2*len(x)
// bytes and must not overlap x.
func FP16Encode(dst []byte, x []float32) { fp16Encode(dst[:2*len(x)], x) }

// FP16Finite equals
//
//	for i := range n { if exponent(get16(code[2*i:])) is all ones { return false } }
//	return true
//
// that is, no half of code is NaN or infinite. len(code) must be even.
func FP16Finite(code []byte) bool { return fp16Finite(code) }
