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

// One slice of an exchange by a lattice codec: the active peer codes its slice, the
// passive one answers with half the difference, and both apply it.
func ExampleLattice() {
	codec, err := quant.ByName("lattice6+4")
	if err != nil {
		fmt.Println(err)
		return
	}
	active, passive := tensor.Vector{0.5, -0.25, 1.25}, tensor.Vector{0.5, 0.25, 0.75}
	n := len(active)
	ranges := []float32{0.6} // of each block, how far apart the two believe to be

	code := make([]byte, codec.Lattice.MaxSize(n))
	code = code[:codec.Lattice.Encode(code, active, ranges, nil, quant.Normal)]

	diff := make([]byte, codec.Diff.Size(n))
	pass := quant.Pass{Failed: make(quant.Set, quant.SetSize(n)), Seen: make([]float32, quant.Blocks(n))}
	if _, err := codec.Lattice.Answer(diff, code, passive, pass); err != nil {
		fmt.Println(err)
		return
	}
	steps := codec.Lattice.Diff()
	steps.Shrink(diff, n, 0.5)
	fmt.Printf("%d bytes there, %d back, %d blocks failed\n", len(code), len(diff), pass.Failed.Count())

	if err := errors.Join(steps.Sub(active, diff), steps.Add(passive, diff)); err != nil {
		fmt.Println(err)
		return
	}
	for i := range active {
		fmt.Printf("%.2f %.2f\n", active[i], passive[i])
	}
	// Output:
	// 11 bytes there, 6 back, 0 blocks failed
	// 0.50 0.50
	// -0.01 0.01
	// 1.01 0.99
}
