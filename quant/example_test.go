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
	code := make([]byte, codec.MaxSize(len(slice)))
	code = code[:codec.Encode(code, slice, nil)]

	received := make(tensor.Vector, len(slice))
	if err := codec.Decode(received, code, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(code), "bytes:", received)

	err = codec.Decode(received, code[:5], nil)
	fmt.Println(errors.Is(err, quant.ErrCode), err)
	// Output:
	// 6 bytes: [1 -0.5 3.140625]
	// true quant: decode bf16: 5 bytes for 3 values, not 6: code has the wrong size
}

// One slice of an exchange by a lattice codec: the active peer codes its slice, the
// passive one answers with half the difference, and both apply it.
func ExampleCodec_Answer() {
	codec, err := quant.ByName("lattice6+4")
	if err != nil {
		fmt.Println(err)
		return
	}
	active, passive := tensor.Vector{0.5, -0.25, 1.25}, tensor.Vector{0.5, 0.25, 0.75}
	apart := []float32{0.6} // of each block, how far apart the two believe to be

	code := make([]byte, codec.MaxSize(len(active)))
	code = code[:codec.Encode(code, active, apart)]

	diff := make([]byte, codec.DiffSize(len(passive)))
	half := make(tensor.Vector, len(active))
	if err := codec.Answer(diff, code, passive, half, 0.5); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes there, %d back\n", len(code), len(diff))

	if err := codec.DecodeDiff(half, diff); err != nil {
		fmt.Println(err)
		return
	}
	tensor.Sub(active, half)
	tensor.Add(passive, half)
	for i := range active {
		fmt.Printf("%.2f %.2f\n", active[i], passive[i])
	}
	// Output:
	// 11 bytes there, 6 back
	// 0.50 0.50
	// -0.01 0.01
	// 1.01 0.99
}
