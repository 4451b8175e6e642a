package quant

import "github.com/seed-97356399/murmuration/internal/kernel"

// Bits of values travel in planes of 8, 4, 2 and 1 bits a value: those whose widths
// sum up to the number of bits, the widest first, which holds the lowest bits. See
// kernel.Pack for what a plane looks like.

const widestPlane = 8

// planesSize is the number of bytes of n values of so many bits.
func planesSize(n, bits int) int {
	size := 0
	for width := widestPlane; width > 0; width /= 2 {
		if bits&width != 0 {
			size += kernel.PackedSize(n, width)
		}
	}
	return size
}

// pack writes the lowest bits of the first n values, whose upper bytes are needed
// beyond 8 bits only.
func (w *workspace) pack(code []byte, n, bits int) {
	source, at := w.low[:n], 0
	for width := widestPlane; width > 0; width /= 2 {
		if bits&width == 0 {
			continue
		}
		size := kernel.PackedSize(n, width)
		if width == widestPlane {
			copy(code, source)
			source = w.high[:n]
		} else {
			kernel.Pack(code[:size], source, width, at)
			at += width
		}
		code = code[size:]
	}
}

// unpack returns the bytes of n values of so many bits. They lie in the workspace
// or in the code.
func (w *workspace) unpack(code []byte, n, bits int) (low, high []byte) {
	if bits < widestPlane {
		w.unpackInto(w.low[:n], code, bits, signs{})
		return w.low[:n], nil
	}
	if bits > widestPlane {
		w.unpackInto(w.high[:n], code[n:], bits-widestPlane, signs{})
	}
	return code[:n], w.high[:n]
}

// signs says how the bits of a value become its number: v -> v ^ flip - minus, with
// v's bits from bit at on.
type signs struct {
	at          int
	flip, minus byte
}

// unpackInto unpacks fewer bits than the widest plane has.
func (w *workspace) unpackInto(values, code []byte, bits int, s signs) {
	clear(values)
	for width := widestPlane / 2; bits > 0; width /= 2 {
		if bits&width == 0 {
			continue
		}
		if bits -= width; bits == 0 {
			kernel.Unpack(values, code, width, s.at, s.flip, s.minus)
		} else {
			kernel.Unpack(values, code, width, s.at, 0, 0)
		}
		code, s.at = code[kernel.PackedSize(len(values), width):], s.at+width
	}
}

// padded tells whether planes have bits beyond their n values that are not zero.
func padded(code []byte, n, bits int) bool {
	for width := widestPlane / 2; width > 0; width /= 2 {
		if bits&widestPlane != 0 {
			code, bits = code[n:], bits-widestPlane
		}
		if bits&width == 0 {
			continue
		}
		size := kernel.PackedSize(n, width)
		for j, c := range code[:size] {
			// Byte j has room for 8/width values, of which those below n count.
			count := (n - j + size - 1) / size
			if c>>(count*width) != 0 {
				return true
			}
		}
		code = code[size:]
	}
	return false
}
