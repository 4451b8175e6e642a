package kernel

// BF16Encode writes the bfloat16 code of each value, two bytes in little-endian
// order: the upper half of the float32, rounded to nearest, ties to even. It
// equals
//
//	for i := range x { put16(dst[2*i:], roundToBF16(x[i])) }
//
// A finite value above the largest finite bfloat16 by half a step (3.3961e38)
// becomes infinite, as IEEE 754 rounds; infinity stays infinite, and NaN stays
// NaN, with its upper payload bits and made quiet. dst holds 2*len(x) bytes and
// must not overlap x.
func BF16Encode(dst []byte, x []float32) { bf16Encode(dst[:2*len(x)], x) }

// BF16Decode is the exact inverse of BF16Encode on its codes:
//
//	for i := range dst { dst[i] = float32frombits(uint32(get16(code[2*i:])) << 16) }
//
// code holds 2*len(dst) bytes and must not overlap dst.
func BF16Decode(dst []float32, code []byte) { bf16Decode(dst, code[:2*len(dst)]) }

// BF16Finite equals
//
//	for i := range n { if exponent(get16(code[2*i:])) is all ones { return false } }
//	return true
//
// that is, no bfloat16 of code is NaN or infinite. len(code) must be even.
func BF16Finite(code []byte) bool { return bf16Finite(code) }

// FP16Decode writes the float32 that equals each IEEE 754 half-precision value
// of code (little-endian):
//
//	for i := range dst { dst[i] = fromHalf(get16(code[2*i:])) }
//
// Every half is exactly a float32; NaN stays NaN, with its payload, and may come
// back quiet. code holds 2*len(dst) bytes and must not overlap dst.
func FP16Decode(dst []float32, code []byte) { fp16Decode(dst, code[:2*len(dst)]) }

// Float32Finite equals
//
//	for i := range n { if exponent(get32(code[4*i:])) is all ones { return false } }
//	return true
//
// that is, no little-endian float32 of code is NaN or infinite. It looks at
// received bytes before they are trusted as values. len(code) must be a multiple
// of 4.
func Float32Finite(code []byte) bool { return float32Finite(code) }
