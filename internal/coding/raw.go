package coding

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// rawCoder codes values as they are.
type rawCoder struct{}

func (rawCoder) Size(n int) int { return tensor.ValueSize * n }

func (c rawCoder) Encode(dst []byte, x tensor.Vector) {
	checkEncode(rawName, dst, c.Size(len(x)), len(x))
	tensor.AppendBytes(dst[:0], x)
}

func (c rawCoder) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if err := c.check(len(dst), code); err != nil {
		return err
	}
	tensor.FromBytes(dst, code)
	return nil
}

func (c rawCoder) check(n int, code []byte) error {
	if len(code) != c.Size(n) {
		return sizeError(rawName, len(code), c.Size(n), n)
	}
	if !kernel.Float32Finite(code) {
		return notFiniteError(rawName, n)
	}
	return nil
}

func (rawCoder) View(code []byte) (tensor.Vector, bool) { return tensor.View(code) }
