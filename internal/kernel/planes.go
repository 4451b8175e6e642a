package kernel

// Block is the number of values that the kernels of block codecs take at most at a
// time. They are fastest on whole blocks.
const Block = 1024

// Numbers of up to 7 bits are cut into planes of 4, 2 and 1 bits: those whose widths
// sum up to the number of bits, the widest, which has the lowest bits, first. Byte j
// of a plane of size bytes holds its bits of the numbers j, j+size, j+2*size and so
// on, from its lowest bits up; what lies beyond the last number is zero.

// PackBits writes the planes of the lowest bits of each value. It equals
//
//	at := 0
//	for _, width := range planes of bits {
//		plane := the next (len(values)*width + 7) / 8 bytes of code, which are zero
//		for i, v := range values {
//			j, k := i%len(plane), i/len(plane)
//			plane[j] |= v >> at & (1<<width - 1) << (k * width)
//		}
//		at += width
//	}
//
// len(values) is at most Block, and bits 1 to 6. Code has PackedSize bytes.
func PackBits(code, values []byte, bits int) { packBits(code, values, bits) }

// UnpackBits is the inverse of PackBits: it writes the numbers, whose upper bits are
// zero.
func UnpackBits(values, code []byte, bits int) { unpackBits(values, code, bits) }

// UnpackSteps is UnpackBits for numbers with a sign, in two's complement, of 3 or 4
// bits; a single bit stands for 1 if it is 0, and else for -1. It writes int8.
func UnpackSteps(values, code []byte, bits int) { unpackSteps(values, code, bits) }

// PackedSize is the number of bytes that the planes of n values of so many bits, at
// most 15, take. The widest plane may be of 8 bits.
func PackedSize(n, bits int) int {
	size := 0
	for width := 8; width > 0; width /= 2 {
		if bits&width != 0 {
			size += (n*width + 7) / 8
		}
	}
	return size
}
