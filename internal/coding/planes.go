package coding

import "github.com/seed-97356399/murmuration/internal/kernel"

// Values are sent in planes of 8, 4, 2 and 1 bits for each value. The widths of the planes add up to the number of
// bits; the widest comes first and has the lowest bits. kernel.PackBits describes the narrow planes; a plane of 8
// bits is bytes.

const bytePlane = 8

func planesSize(n, bits int) int {
	if n == BlockLen {
		return BlockLen / 8 * bits
	}
	return kernel.PackedSize(n, bits)
}

// pack writes the lowest bits of the first n values. It reads their upper bytes only for more than 8 bits.
func (w *workspace) pack(code []byte, n, bits int) {
	source := w.low[:n]
	if bits >= bytePlane {
		copy(code, source)
		source, code, bits = w.high[:n], code[n:], bits-bytePlane
	}
	if bits > 0 {
		kernel.PackBits(code, source, bits)
	}
}

// unpack returns the bytes of n values with so many bits. They are in the workspace or in the code.
func (w *workspace) unpack(code []byte, n, bits int) (low, high []byte) {
	if bits < bytePlane {
		kernel.UnpackBits(w.low[:n], code, bits)
		return w.low[:n], nil
	}
	if bits > bytePlane {
		kernel.UnpackBits(w.high[:n], code[n:], bits-bytePlane)
	}
	return code[:n], w.high[:n]
}

// padded tells whether planes of n values have bits beyond these values that are not zero.
func padded(code []byte, n, bits int) bool {
	for width := bytePlane; width > 0; width /= 2 {
		if bits&width == 0 {
			continue
		}
		size := kernel.PackedSize(n, width)
		for j, c := range code[:size] {
			count := (n - j + size - 1) / size // number of values in this byte
			if c>>(count*width) != 0 {
				return true
			}
		}
		code = code[size:]
	}
	return false
}
