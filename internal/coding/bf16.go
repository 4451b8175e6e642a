package coding

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

const bf16Size = 2

// bf16Coder codes values as bfloat16, rounded to nearest, ties to even.
type bf16Coder struct{}

func (bf16Coder) Size(n int) int { return bf16Size * n }

func (c bf16Coder) Encode(dst []byte, x tensor.Vector) {
	checkEncode(bf16Name, dst, c.Size(len(x)), len(x))
	kernel.BF16Encode(dst, x)
}

func (c bf16Coder) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if err := c.check(len(dst), code); err != nil {
		return err
	}
	kernel.BF16Decode(dst, code)
	return nil
}

func (c bf16Coder) check(n int, code []byte) error {
	if len(code) != c.Size(n) {
		return sizeError(bf16Name, len(code), c.Size(n), n)
	}
	if !kernel.BF16Finite(code) {
		return notFiniteError(bf16Name, n)
	}
	return nil
}
