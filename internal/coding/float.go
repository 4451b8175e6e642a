package coding

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Float codes each value separately, rounded to nearest, ties to even: Raw without rounding, BF16 as bfloat16, FP16
// as IEEE 754 half precision, in which values of 65520 and more become infinite.
type Float ID

const fp16Size = 2

func (c Float) name() string {
	switch ID(c) {
	case Raw:
		return rawName
	case BF16:
		return bf16Name
	}
	return fp16Name
}

// Size implements Coder.
func (c Float) Size(n int) int {
	if ID(c) == Raw {
		return tensor.ValueSize * n
	}
	return fp16Size * n
}

// Encode implements Coder.
func (c Float) Encode(dst []byte, x tensor.Vector) {
	checkEncode(c, dst, len(x))
	switch ID(c) {
	case Raw:
		tensor.AppendBytes(dst[:0], x)
	case BF16:
		kernel.BF16Encode(dst, x)
	default:
		kernel.FP16Encode(dst, x)
	}
}

// encode is Encode, and returns the largest magnitude of x.
func (c Float) encode(dst []byte, x tensor.Vector) (most float32) {
	checkEncode(c, dst, len(x))
	for len(x) > 0 {
		n := min(BlockLen, len(x)) // so that the second pass finds them in the cache
		most = max(most, kernel.MaxAbs(x[:n]))
		c.Encode(dst[:c.Size(n)], x[:n])
		x, dst = x[n:], dst[c.Size(n):]
	}
	return most
}

// Decode implements Coder.
func (c Float) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if err := checkSize(c, code, len(dst)); err != nil {
		return err
	}
	if !c.finite(code) {
		return fmt.Errorf("quant: decode %s: slice of %d values: %w", c.name(), len(dst), ErrNotFinite)
	}
	switch ID(c) {
	case Raw:
		tensor.FromBytes(dst, code)
	case BF16:
		kernel.BF16Decode(dst, code)
	default:
		kernel.FP16Decode(dst, code)
	}
	return nil
}

func (c Float) finite(code []byte) bool {
	switch ID(c) {
	case Raw:
		return kernel.Float32Finite(code)
	case BF16:
		return kernel.BF16Finite(code)
	}
	return kernel.FP16Finite(code)
}

// View returns a code as a vector over the same memory, without a copy. It reports false if that is impossible, as
// for all codes but Raw (see tensor.View): then use Encode and Decode. It checks nothing: the caller must check the
// size, and that the values are finite.
func (c Float) View(code []byte) (tensor.Vector, bool) {
	if ID(c) != Raw {
		return nil, false
	}
	return tensor.View(code)
}

// Rounding bounds how much longer rounding may make a value, in addition to a small part of the value: half of the
// smallest value of half precision.
func (c Float) Rounding() float64 {
	if ID(c) != FP16 {
		return 0
	}
	return 0x1p-25
}

// Shorten changes the code of x in half precision: each value that was rounded away from zero becomes the next value
// towards zero.
func (c Float) Shorten(code []byte, x tensor.Vector) {
	var coded [BlockLen]float32
	for len(x) > 0 {
		n := min(len(x), BlockLen)
		kernel.FP16Decode(coded[:n], code[:c.Size(n)])
		for i, v := range x[:n] {
			if math.Abs(float64(coded[i])) > math.Abs(float64(v)) { // so coded[i] is not zero
				at := code[fp16Size*i:]
				binary.LittleEndian.PutUint16(at, binary.LittleEndian.Uint16(at)-1)
			}
		}
		x, code = x[n:], code[c.Size(n):]
	}
}
