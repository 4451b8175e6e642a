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

// Add implements Adder.
func (c rawCoder) Add(dst tensor.Vector, code []byte) error { return c.apply(dst, code, kernel.Add) }

// Sub implements Adder.
func (c rawCoder) Sub(dst tensor.Vector, code []byte) error { return c.apply(dst, code, kernel.Sub) }

// apply works on the code where it lies, or on copies of its pieces where it lies
// badly.
func (c rawCoder) apply(dst tensor.Vector, code []byte, op func(dst, x []float32)) error {
	if err := c.check(len(dst), code); err != nil {
		return err
	}
	if view, ok := tensor.View(code); ok {
		op(dst, view)
		return nil
	}
	var room [BlockLen]float32
	for len(dst) > 0 {
		n := min(len(room), len(dst))
		tensor.FromBytes(room[:n], code[:c.Size(n)])
		op(dst[:n], room[:n])
		dst, code = dst[n:], code[c.Size(n):]
	}
	return nil
}

// View implements Viewer.
func (rawCoder) View(code []byte) (tensor.Vector, bool) { return tensor.View(code) }
