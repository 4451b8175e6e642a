package coding

import (
	"encoding/binary"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

const fp16Size = 2

// fp16Coder codes values as IEEE 754 half precision, rounded to nearest, ties to
// even. Values of 65520 and more become infinite, which Decode refuses.
type fp16Coder struct{}

func (fp16Coder) Size(n int) int { return fp16Size * n }

func (c fp16Coder) Encode(dst []byte, x tensor.Vector) {
	checkEncode(fp16Name, dst, c.Size(len(x)), len(x))
	kernel.FP16Encode(dst, x)
}

func (c fp16Coder) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if err := c.check(len(dst), code); err != nil {
		return err
	}
	kernel.FP16Decode(dst, code)
	return nil
}

func (c fp16Coder) check(n int, code []byte) error {
	if len(code) != c.Size(n) {
		return sizeError(fp16Name, len(code), c.Size(n), n)
	}
	if !kernel.FP16Finite(code) {
		return notFiniteError(fp16Name, n)
	}
	return nil
}

func (c fp16Coder) Shorten(code []byte, x tensor.Vector) {
	var coded [BlockLen]float32
	for len(x) > 0 {
		n := min(len(x), BlockLen)
		kernel.FP16Decode(coded[:n], code[:c.Size(n)])
		for i, v := range x[:n] {
			if math.Abs(float64(coded[i])) > math.Abs(float64(v)) { // so it is not zero
				at := code[fp16Size*i:]
				binary.LittleEndian.PutUint16(at, binary.LittleEndian.Uint16(at)-1)
			}
		}
		x, code = x[n:], code[c.Size(n):]
	}
}

// Rounding implements Shortener: half of the smallest value.
func (fp16Coder) Rounding() float64 { return 0x1p-25 }
