package quant

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// fuzzDecode: for any bytes and any length, a decoder gives an error that says
// why and leaves dst alone, or gives finite values whose code is those bytes.
func fuzzDecode(f *testing.F, c Coder) {
	const maxValues = 1 << 12
	f.Add([]byte{}, uint16(0))
	f.Add(code(c, tensor.Vector{1, -2, 3.5}), uint16(3))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		before := make(tensor.Vector, n%maxValues)
		for i := range before {
			before[i] = float32(i)
		}
		dst, received := slices.Clone(before), slices.Clone(data)
		err := c.Decode(dst, data, nil)
		if !bytes.Equal(data, received) {
			t.Fatal("the code was written to")
		}
		if err != nil {
			if !errors.Is(err, ErrSize) && !errors.Is(err, ErrNotFinite) {
				t.Fatalf("error %v wraps no sentinel", err)
			}
			if !slices.Equal(dst, before) {
				t.Fatalf("%v, but dst was written to", err)
			}
			return
		}
		if !tensor.Finite(dst) {
			t.Fatalf("decoded %v", dst)
		}
		if again := code(c, dst); !bytes.Equal(again, data) {
			t.Fatalf("% x decodes to %v, whose code is % x", data, dst, again)
		}
	})
}

func FuzzRawDecode(f *testing.F) { fuzzDecode(f, rawCoder{}) }

func FuzzBF16Decode(f *testing.F) { fuzzDecode(f, bf16Coder{}) }
