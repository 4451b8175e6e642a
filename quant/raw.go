package quant

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// rawCoder codes values as they are.
type rawCoder struct{}

func (rawCoder) Size(n int) int { return tensor.ValueSize * n }

func (c rawCoder) Encode(dst []byte, x tensor.Vector) {
	checkEncode(rawName, dst, c.Size(len(x)), len(x))
	tensor.PutBytes(dst, x)
}

func (c rawCoder) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if len(code) != c.Size(len(dst)) {
		return sizeError(rawName, len(code), c.Size(len(dst)), len(dst))
	}
	if !kernel.Float32Finite(code) {
		return notFiniteError(rawName, len(dst))
	}
	tensor.FromBytes(dst, code)
	return nil
}

// View implements Viewer.
func (rawCoder) View(code []byte) (tensor.Vector, bool) { return tensor.View(code) }
