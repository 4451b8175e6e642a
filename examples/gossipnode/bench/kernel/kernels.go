package kernel

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// newKernels makes all kernels on vectors of n values, which they share, and the copy
// that they are held against.
func newKernels(n int, seed uint64) (kernels []measure.Kernel, copied measure.Kernel, err error) {
	dst, x, y := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
	measure.Fill(x, seed, 1)
	measure.Fill(y, seed, 2)
	copy(dst, y)
	copied = measure.Kernel{Name: "copy", Pass: func() { copy(dst, x) }}
	const small, half = 1.0 / 1024, 0.5
	var sum float64 // kept, as all is, so that no compiler finds the work useless
	var all bool
	kernels = []measure.Kernel{
		{Name: "add", Pass: func() { tensor.Add(dst, x) }},
		{Name: "sub", Pass: func() { tensor.Sub(dst, x) }},
		{Name: "axpy", Pass: func() { tensor.Axpy(dst, small, x) }},
		{Name: "scaled_difference", Pass: func() { tensor.ScaledDifference(dst, half, x, y) }},
		{Name: "norm2", Pass: func() { sum += tensor.Norm2(x) }},
		{Name: "squared_distance", Pass: func() { sum += tensor.SquaredDistance(x, y) }},
		{Name: "max_abs", Pass: func() { sum += float64(tensor.MaxAbs(x)) }},
		{Name: "finite", Pass: func() { all = tensor.Finite(x) != all }},
	}
	room := make([]byte, tensor.ValueSize*n)
	for _, name := range []string{"raw", "bf16"} {
		codec, err := quant.ByName(name)
		if err != nil {
			return nil, copied, fmt.Errorf("measuring codec %s: %w", name, err)
		}
		code := room[:codec.MaxSize(n)]
		codec.Encode(code, x, nil)
		if err := codec.Decode(dst, code, nil); err != nil {
			return nil, copied, fmt.Errorf("measuring codec %s: %w", name, err)
		}
		kernels = append(kernels,
			measure.Kernel{Name: name + "_encode", Pass: func() { codec.Encode(code, x, nil) }},
			measure.Kernel{Name: name + "_decode", Pass: func() { _ = codec.Decode(dst, code, nil) }}) // did just now
	}
	// Optimizers decay the weights: without, a gradient that is overwritten with the step
	// would shrink to denormal numbers, which processors are slow with.
	const rate, decay = 1e-3, 1e-2
	step := func(o optim.Optimizer) func() { return func() { o.Delta(dst, x, rate) } }
	return append(kernels,
		measure.Kernel{Name: "momentum", Pass: step(&optim.SGD{Momentum: optim.DefaultMomentum, WeightDecay: decay})},
		measure.Kernel{Name: "nesterov", Pass: step(&optim.SGD{Momentum: optim.DefaultMomentum, WeightDecay: decay, Nesterov: true})},
		measure.Kernel{Name: "adamw", Pass: step(&optim.AdamW{WeightDecay: decay})},
		measure.Kernel{Name: "lion", Pass: step(&optim.Lion{WeightDecay: decay})}), copied, nil
}
