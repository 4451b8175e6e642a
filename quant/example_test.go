package quant_test

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

func Example() {
	codec, err := quant.ByName("bf16")
	if err != nil {
		fmt.Println(err)
		return
	}
	slice := tensor.Vector{1, -0.5, 3.14159}
	code := make([]byte, codec.Code.Size(len(slice)))
	codec.Code.Encode(code, slice)

	received := make(tensor.Vector, len(slice))
	if err := codec.Code.Decode(received, code, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(code), "bytes:", received)

	err = codec.Code.Decode(received, code[:5], nil)
	fmt.Println(errors.Is(err, quant.ErrSize), err)
	// Output:
	// 6 bytes: [1 -0.5 3.140625]
	// true quant: decode bf16: 5 bytes for 3 values, not 6: code has the wrong size
}
