package kernel

// Block is the number of values that the kernels of block codecs take at most at a
// time. They are fastest on whole blocks.
const Block = 512

// Pack takes width bits of each value, from bit at on, and lays them side by side.
// Byte j of the code holds the bits of values j, j+len(code), j+2*len(code) and so
// on, from its lowest bits up; what lies beyond the last value is zero. It equals
//
//	for j := range code {
//		code[j] = 0
//		for k, i := 0, j; k < 8/width && i < len(values); k, i = k+1, i+len(code) {
//			code[j] |= values[i] >> at & (1<<width - 1) << (k * width)
//		}
//	}
//
// width is 1, 2 or 4, at+width at most 8, and len(code) the number of bytes that
// len(values), at most Block, times width bits fill.
func Pack(code, values []byte, width, at int) {
	pack(code[:PackedSize(len(values), width)], values, width, at)
}

// Unpack is the inverse of Pack on the bits from at on, which must be zero in
// values, with two operations on top that give the bits a sign. It equals
//
//	for i := range values {
//		j, k := i%len(code), i/len(code)
//		v := values[i] | code[j] >> (k * width) & (1<<width - 1) << at
//		values[i] = v ^ flip - minus
//	}
//
// The sizes are as for Pack.
func Unpack(values, code []byte, width, at int, flip, minus byte) {
	unpack(values, code[:PackedSize(len(values), width)], width, at, flip, minus)
}

// PackedSize is the number of bytes that n values of width bits fill.
func PackedSize(n, width int) int { return (n*width + 7) / 8 }
